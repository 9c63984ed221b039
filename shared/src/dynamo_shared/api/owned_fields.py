"""The owners of an object's fields, from `metadata.managedFields` (`FieldsV1`). Accepts any value.

Objects in STATE have no managedFields: read the objects from the API server.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from dynamo_shared.api.untrusted import json_text
from dynamo_shared.api.untrusted.limits import ReadLimits
from dynamo_shared.api.untrusted.reading import below, items, mapping, text

Step: TypeAlias = str | dict[str, str]
"""The name of a field, or the key of an item of a list: `{"name": "main"}`."""
Leaf: TypeAlias = tuple[str, ...]
"""A path in the format of FieldsV1: `f:spec`, `k:{"name":"main"}`."""

_KEY = ReadLimits(4096, 16, 4)


@dataclass(frozen=True, slots=True)
class OwnedFields:
    """The fields that one field manager owns by one operation."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    time: str
    fields: dict[str, Any]

    def has(self, path: Iterable[Step]) -> bool:
        """Whether the manager owns a field."""
        fields: Any = self.fields
        for step in path:
            fields = _below(mapping(fields), step)
        return fields is not None

    def leaves(self) -> Iterator[Leaf]:
        """Paths of all owned fields, without those that only contain other owned fields."""
        return _leaves(self.fields, ())


def owned_fields(obj: Any) -> list[OwnedFields]:
    """The owned fields of an object, one entry for each manager, operation and subresource."""
    return [
        OwnedFields(
            text(each.get("manager")),
            text(each.get("operation")),
            text(each.get("apiVersion")),
            text(each.get("subresource")),
            text(each.get("time")),
            mapping(each.get("fieldsV1")),
        )
        for each in map(mapping, items(below(obj, ("metadata", "managedFields"))))
    ]


def managers_of(obj: Any, *path: Step) -> list[str]:
    """Names of the managers of a field, the latest first; "" for a manager without a name."""
    owners = [(each.time, each.manager) for each in owned_fields(obj) if each.has(path)]
    return [manager for _, manager in sorted(owners, reverse=True)]


def path_of(leaf: Leaf) -> list[Step] | None:
    """The steps of a path; None if a step has another form than a field, or a key of one string."""
    path: list[Step] = []
    for each in leaf:
        kind, _, rest = each.partition(":")
        step = rest if kind == "f" else _key(rest) if kind == "k" else None
        if step is None:
            return None
        path.append(step)
    return path


def _below(fields: dict[str, Any], step: Step) -> Any:
    if isinstance(step, str):
        return fields.get(f"f:{step}")
    return next((each for name, each in fields.items() if name.startswith("k:") and _key(name[2:]) == step), None)


def _leaves(fields: Any, above: Leaf) -> Iterator[Leaf]:
    children = {name: each for name, each in mapping(fields).items() if name != "."}
    if above and (not children or "." in fields):
        yield above
    for name, each in children.items():
        yield from _leaves(each, (*above, name))


def _key(content: str) -> dict[str, str] | None:
    try:
        key = json_text.decode(content, _KEY)
    except json_text.InvalidJson:
        return None
    return key if isinstance(key, dict) and len(key) == 1 and isinstance(next(iter(key.values())), str) else None
