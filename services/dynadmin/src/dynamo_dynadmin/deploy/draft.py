"""A manifest under construction, which records the origin of each field."""

import re
from dataclasses import asdict, dataclass, field
from typing import Any

from dynamo_shared.api.engines.images import REPOSITORY
from dynamo_shared.api.objects import KubeObject

from dynamo_dynadmin.deploy.problems import FieldProblem, pointer

_PART = re.compile(r"\[\"([^\"]*)\"\]|\[([^\]]*)\]|([^.\[\]]+)")


def parts_of(path: str) -> tuple[str, ...]:
    """Splits a path such as `spec.components[1].name`; keys with dots stand in brackets, with or without quotes."""
    return tuple(quoted or index or plain for quoted, index, plain in _PART.findall(path))


@dataclass(frozen=True, slots=True)
class PlatformDefaults:
    """Defaults from the platform's settings for an intent that names no value."""

    image_repository: str = REPOSITORY
    version: str = "1.2.0"
    model_secret: str = "hf-token-secret"  # noqa: S105 - a name


@dataclass(frozen=True, slots=True)
class Defaulted:
    """A field of the manifest that the caller did not set: its path, its value, and the reason for the value."""

    path: str
    value: Any
    why: str


@dataclass(slots=True)
class Draft:
    """The manifest, with the origin of its fields, the defaulted fields, and the fields that it cannot express."""

    manifest: KubeObject
    origins: dict[tuple[str, ...], str] = field(default_factory=dict)
    """pointer into the intent, by path of the manifest"""
    defaulted: list[Defaulted] = field(default_factory=list)
    """fields that the intent does not name"""
    unexpressed: list[FieldProblem] = field(default_factory=list)
    """fields of the intent that have no place in the manifest: reported, never dropped"""
    warnings: list[str] = field(default_factory=list)
    problems: list[FieldProblem] = field(default_factory=list)
    """why no manifest can be created"""

    def described(self) -> dict[str, Any]:
        """The manifest and the remarks about it, as the REST API answers them."""
        return {
            "manifest": self.manifest,
            "defaulted": [asdict(each) for each in self.defaulted],
            "unexpressed": [{"pointer": each.pointer, "detail": each.detail} for each in self.unexpressed],
            "warnings": list(self.warnings),
        }

    def put(self, path: str, value: Any, *source: str | int) -> None:
        """Set a field of the manifest to the value of a field of the intent; missing parents are created."""
        *above, last = parts_of(path)
        place: Any = self.manifest
        for part in above:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        place[last] = value
        self.came_from(path, *source)

    def came_from(self, path: str, *source: str | int) -> None:
        """Record that a field of the manifest comes from a field of the intent."""
        self.origins[parts_of(path)] = pointer(source)

    def default(self, path: str, value: Any, why: str) -> None:
        """Record a field whose value the intent does not name."""
        self.defaulted.append(Defaulted(path, value, why))

    def cannot_express(self, *source: str | int, why: str) -> None:
        """Record a field of the intent that has no place in the manifest."""
        self.unexpressed.append(FieldProblem(pointer(source), why))

    def refuse(self, *source: str | int, why: str) -> None:
        """Record a field of the intent for which no manifest can be created."""
        self.problems.append(FieldProblem(pointer(source), why))

    def problem(self, path: str, detail: str) -> FieldProblem:
        """A refused field of the manifest, as a problem of the intent."""
        return FieldProblem(self.pointer_of(path), detail, path)

    def pointer_of(self, path: str) -> str:
        """Pointer to the field of the intent from which a refused field of the manifest came; empty if the caller did
        not set it.
        """
        parts = parts_of(path)
        for length in range(len(parts), 0, -1):
            if parts[:length] in self.origins:
                return self.origins[parts[:length]]
        # The refusal may name a parent of which the caller set a part: for example, a component that lacks a field.
        inside = {source for place, source in self.origins.items() if place[: len(parts)] == parts}
        return inside.pop() if len(inside) == 1 else ""
