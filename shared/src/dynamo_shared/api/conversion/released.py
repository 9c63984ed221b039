"""Server-side apply in two versions: what a manager applies no longer goes, also where only the annotation has it.

The API server prunes by paths, and asks for that in the version of every manager in turn. A field that another version
keeps in an annotation has no path there: what was taken away comes back with the annotation, and has no owner any more. So
does what v1beta1 has in a list that is one value, as containers are: of that the API server keeps all or nothing.
"""

from typing import Any

from dynamo_shared.api.conversion.convert import KINDS, NotConvertible, convert
from dynamo_shared.api.conversion.graph import ALPHA, BETA
from dynamo_shared.api.conversion.kept import Path, without_counterpart
from dynamo_shared.api.conversion.pieces import put
from dynamo_shared.api.owned_fields import Leaf, OwnedFields, owned_fields, path_of
from dynamo_shared.api.resources import GROUP
from dynamo_shared.api.untrusted.reading import mapping


def without_released(obj: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """An updated object without fields that a manager applied in its version, applies no longer, and that no manager owns now.

    What the other version can say may have an owner there: it stays where anyone owns more of the specification than
    replicas in that version. The very object where there is nothing to take away.
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
    """Whether a field says what runs. Replicas, and that a component is there, have a path in both versions."""
    return leaf[0] == "f:spec" and leaf[-1] not in ("f:replicas", "f:name") and not leaf[-1].startswith("k:")


def _part(path: Path) -> Path:
    """The field of the component, or of the specification, that a path is in."""
    return path[:4] if path[1:2] in (["services"], ["components"]) else path[:2]


def _hashable(path: Path) -> tuple[Any, ...]:
    return tuple(step if isinstance(step, str | int) else tuple(step.items()) for step in path)


def _without(obj: dict[str, Any], taken: list[tuple[Path, int]]) -> dict[str, Any]:
    """The object without the values at some paths, nor objects above them that are empty then, down to stems of so many steps."""
    while taken:
        obj = put(obj, [[path] for path, _ in taken])
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
    """Fields that managers applied in this version before and not now, except those that a manager owns anything of.

    That an object is there (`.`) the API server writes for what a manager adds, and not for what it applies again.
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
    """What is owned, by manager and operation, of those who wrote in this version; of subresources none."""
    return {
        (each.manager, each.operation): each
        for each in owned_fields(obj)
        if each.api_version == api_version and not each.subresource
    }
