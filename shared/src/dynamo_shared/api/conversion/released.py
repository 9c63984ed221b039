"""Server-side apply with two versions: removes fields that a manager no longer applies, also if only the annotation has
them.

The API server prunes by paths, in the version of each manager. A field that another version preserves in the annotation
has no path in that version, so it would come back, without an owner. The same applies to items of a list that v1beta1
handles as one value, such as containers: the API server keeps all of them or none.
"""

from typing import Any

from dynamo_shared.api.conversion.changes import apply_changes
from dynamo_shared.api.conversion.convert import KINDS, NotConvertible, convert
from dynamo_shared.api.conversion.graph import ALPHA, BETA
from dynamo_shared.api.conversion.preserved import Path, without_counterpart
from dynamo_shared.api.owned_fields import Leaf, OwnedFields, owned_fields, path_of
from dynamo_shared.api.resources import GROUP
from dynamo_shared.api.untrusted.reading import mapping


def without_released(obj: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """An updated object without fields that a manager applied before, no longer applies, and that no other manager
    owns.

    A field that the other version has may have an owner in that version: it is retained if a manager owns more of the
    spec than replicas in that version. Returns the same object if no field is removed.
    """
    gone = _released(obj, old)
    if not gone or obj.get("kind") not in KINDS:
        return obj
    version = str(obj["apiVersion"]).partition("/")[2]
    other_version = f"{GROUP}/{ALPHA if version == BETA else BETA}"
    try:
        other = convert(obj, other_version)
    except NotConvertible:
        return obj
    places = {_hashable(path) for path, _ in without_counterpart(other)}
    owned_there = any(_is_of_spec(leaf) for owned in _entries(obj, other_version).values() for leaf in owned.leaves())
    taken: list[tuple[Path, int]] = []
    for leaf in gone:
        path = path_of(leaf)
        if not path:
            continue
        steps = _hashable(path)
        stem = next((length for length in range(1, len(steps) + 1) if steps[:length] in places), 0)
        if not stem and not owned_there and _is_of_spec(leaf):
            stem = len(_part(path))
        if 0 < stem <= len(path):
            taken.append((path, stem))
    return _without(obj, taken)


def _is_of_spec(leaf: Leaf) -> bool:
    """Whether a field is of the spec, except replicas and names of components, which have a path in both versions."""
    return leaf[0] == "f:spec" and leaf[-1] not in ("f:replicas", "f:name") and not leaf[-1].startswith("k:")


def _part(path: Path) -> Path:
    """The path of the component's field, or the field of the spec, that contains a path."""
    return path[:4] if path[1:2] in (["services"], ["components"]) else path[:2]


def _hashable(path: Path) -> tuple[Any, ...]:
    return tuple(step if isinstance(step, str | int) else tuple(step.items()) for step in path)


def _without(obj: dict[str, Any], taken: list[tuple[Path, int]]) -> dict[str, Any]:
    """The object without the values at some paths, and without objects that become empty above them, down to a depth (stem)."""
    while taken:
        obj = apply_changes(obj, [[path] for path, _ in taken])
        above: dict[tuple[Any, ...], tuple[Path, int]] = {}
        for path, stem in taken:
            if len(path) > stem:
                key = _hashable(path[:-1])
                above[key] = path[:-1], min(stem, above.get(key, (path, stem))[1])
        taken = [(path, stem) for path, stem in above.values() if _at(obj, path) == {}]
    return obj


def _at(node: Any, path: Path) -> Any:
    for step in path:
        node = mapping(node).get(step) if isinstance(step, str) else None
    return node


def _released(obj: dict[str, Any], old: dict[str, Any]) -> set[Leaf]:
    """Fields that managers applied in this version before and not now, and of which no manager owns a part.

    The entry of an object itself (`.`) is not significant: the API server writes it only at the first apply.
    """
    version = str(obj.get("apiVersion"))
    now, before = _entries(obj, version), _entries(old, version)
    released: set[Leaf] = set()
    for name, owned in before.items():
        if owned.operation == "Apply" and name in now and now[name].fields != owned.fields:
            released |= set(owned.leaves()) - set(now[name].leaves())
    if released:
        for owned in now.values():
            released -= {leaf[:steps] for leaf in owned.leaves() for steps in range(1, len(leaf) + 1)}
    return released


def _entries(obj: dict[str, Any], api_version: str) -> dict[tuple[str, str], OwnedFields]:
    """The owned fields by manager and operation, for managers that wrote in this version, without subresources."""
    return {
        (each.manager, each.operation): each
        for each in owned_fields(obj)
        if each.api_version == api_version and not each.subresource
    }
