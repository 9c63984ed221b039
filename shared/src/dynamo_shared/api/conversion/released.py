"""Server-side apply in two versions: what a manager applies no longer goes, also where only the annotation has it.

The API server prunes by paths, and asks for that in the version of every manager in turn. A field that another version
keeps in an annotation has no path there: what was taken away comes back with the annotation, and has no owner any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dynamo_shared.api.conversion.convert import KINDS, NotConvertible, convert
from dynamo_shared.api.conversion.graph import ALPHA, BETA
from dynamo_shared.api.conversion.kept import Path, unsayable
from dynamo_shared.api.conversion.pieces import put
from dynamo_shared.api.resources import GROUP

Leaf = tuple[str, ...]


def without_released(obj: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """An updated object without fields that a manager applied in its version, applies no longer, and that no manager owns now.

    Only fields that the other version cannot say are checked; of others the API server takes care. The very object
    where there is nothing to take away.
    """
    gone = _released(obj, old)
    if not gone or obj.get("kind") not in KINDS:
        return obj
    version = str(obj["apiVersion"]).partition("/")[2]
    try:
        other = convert(obj, f"{GROUP}/{ALPHA if version == BETA else BETA}")
    except NotConvertible:
        return obj
    places = [path for path, _ in unsayable(other)]
    result = obj
    for leaf in gone:
        path = _path(leaf)
        place = next((each for each in places if path and path[: len(each)] == each), None)
        if path and place:
            result = _without(result, path, len(place))
    return result


def _without(obj: dict[str, Any], path: Path, stem: int) -> dict[str, Any]:
    """The object without the value at a path, nor objects above it that are empty then, down to a stem of so many steps."""
    while len(path) >= stem:
        obj = put(obj, [[path]])
        path = path[:-1]
        if _at(obj, path) != {}:
            break
    return obj


def _at(node: Any, path: Path) -> Any:
    for step in path:
        node = node.get(step) if isinstance(node, dict) and isinstance(step, str) else None
    return node


def _released(obj: dict[str, Any], old: dict[str, Any]) -> set[Leaf]:
    """Fields that managers applied in this version before and not now, except those that other managers own."""
    now, before = _entries(obj), _entries(old)
    released: set[Leaf] = set()
    for name, fields in before.items():
        if name[1] == "Apply" and name in now and now[name] != fields:
            released |= set(_leaves(fields, ())) - set(_leaves(now[name], ()))
    if released:
        for fields in now.values():
            released -= set(_leaves(fields, ()))
    return released


def _entries(obj: dict[str, Any]) -> dict[tuple[str, str], Any]:
    """Fields by manager and operation, of those who wrote in the object's version; of subresources none."""
    metadata = obj.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    return {
        (str(each.get("manager")), str(each.get("operation"))): each.get("fieldsV1")
        for each in (entries if isinstance(entries, list) else ())
        if isinstance(each, dict) and each.get("apiVersion") == obj.get("apiVersion") and not each.get("subresource")
    }


def _leaves(fields: Any, above: Leaf) -> Iterator[Leaf]:
    """Paths of a set of fields (`FieldsV1` of Kubernetes), their steps as they stand there."""
    children = {name: each for name, each in fields.items() if name != "."} if isinstance(fields, dict) else {}
    if above and (not children or "." in fields):
        yield above
    for name, each in children.items():
        yield from _leaves(each, (*above, name))


def _path(leaf: Leaf) -> Path | None:
    """Steps as pieces have them; None where one is by value or by position."""
    path: Path = []
    for step in leaf:
        kind, _, name = step.partition(":")
        if kind == "f":
            path.append(name)
        elif kind == "k":
            try:
                path.append(json.loads(name))
            except ValueError:
                return None
        else:
            return None
    return path
