"""A manifest that is being written, which remembers where each of its fields came from."""

import re
from dataclasses import dataclass, field
from typing import Any

from dynamo_shared.api.objects import KubeObject

from dynamo_dynadmin.deploy.problems import FieldProblem, pointer

_PART = re.compile(r"\[\"([^\"]*)\"\]|\[([^\]]*)\]|([^.\[\]]+)")


def parts_of(path: str) -> tuple[str, ...]:
    """`spec.components[1].name` as its parts; keys with dots stand in brackets, with or without quotes."""
    return tuple(quoted or index or plain for quoted, index, plain in _PART.findall(path))


@dataclass(frozen=True, slots=True)
class Defaulted:
    """A field of the manifest that the caller did not set: where it is, its value, and why it has it."""

    path: str
    value: Any
    why: str


@dataclass(slots=True)
class Draft:
    """The manifest, with the origin of its fields, what was defaulted, and what cannot be expressed."""

    manifest: KubeObject
    origins: dict[tuple[str, ...], str] = field(default_factory=dict)
    """by path of the manifest: pointer into the intent"""
    defaulted: list[Defaulted] = field(default_factory=list)
    """fields that the intent does not name"""
    unexpressed: list[FieldProblem] = field(default_factory=list)
    """fields of the intent that the manifest has no place for: reported, never dropped"""
    warnings: list[str] = field(default_factory=list)
    problems: list[FieldProblem] = field(default_factory=list)
    """why there can be no manifest"""

    def put(self, path: str, value: Any, *source: str | int) -> None:
        """A field of the manifest gets the value of a field of the intent; what it is in is made where it is not there."""
        *above, last = parts_of(path)
        place: Any = self.manifest
        for part in above:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        place[last] = value
        self.came_from(path, *source)

    def came_from(self, path: str, *source: str | int) -> None:
        """A field of the manifest is what a field of the intent says."""
        self.origins[parts_of(path)] = pointer(source)

    def default(self, path: str, value: Any, why: str) -> None:
        """A field of the manifest has a value that the intent does not name."""
        self.defaulted.append(Defaulted(path, value, why))

    def cannot_express(self, *source: str | int, why: str) -> None:
        """A field of the intent has no place in the manifest."""
        self.unexpressed.append(FieldProblem(pointer(source), why))

    def refuse(self, *source: str | int, why: str) -> None:
        """A field of the intent makes the whole impossible."""
        self.problems.append(FieldProblem(pointer(source), why))

    def problem(self, path: str, detail: str) -> FieldProblem:
        """A refused field of the manifest as a problem of the intent."""
        return FieldProblem(self.pointer_of(path), detail, path)

    def pointer_of(self, path: str) -> str:
        """Where in the intent a refused field of the manifest came from; empty where the caller did not set it."""
        parts = parts_of(path)
        for length in range(len(parts), 0, -1):
            if parts[:length] in self.origins:
                return self.origins[parts[:length]]
        # The refusal names a whole of which the caller set a part: a component without a field, for example.
        inside = {source for place, source in self.origins.items() if place[: len(parts)] == parts}
        return inside.pop() if len(inside) == 1 else ""
