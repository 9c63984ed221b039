"""Removes replicas of roles that admission set, when the number of nodes changes, so that admission sets them again.

The API server records field owners before it calls admission, so values that admission sets have no owner.
"""

from collections.abc import Iterator
from typing import Any

from dynamo_shared.api.conversion.changes import apply_changes
from dynamo_shared.api.conversion.preserved import Path
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.owned_fields import owned_fields
from dynamo_shared.api.untrusted.reading import items, mapping, nodes
from dynamo_shared.api.validation.roles import pods_of_role
from dynamo_shared.api.validation.rule_set import COMPONENT


def without_filled_in(obj: KubeObject, old: KubeObject) -> KubeObject:
    """An updated object without the replicas that admission set for the previous number of nodes (in `old`); the same
    object if there are none, or if it has no record of field owners. Accepts any value.
    """
    owners = [each for each in owned_fields(obj) if each.fields]
    if not owners:
        return obj
    before = {repr(path): nodes(each.get("multinode")) for path, each in _components(old)}
    for path, component in _components(obj):
        then = before.get(repr(path))
        if then is None or then == nodes(component.get("multinode")):
            continue
        for role in map(mapping, items(component.get("roles"))):
            name, replicas = role.get("name"), role.get("replicas")
            if isinstance(name, str) and replicas is not None and replicas == pods_of_role(name, then):
                steps: Path = ["roles", {"name": name}, "replicas"]
                places = ([*each, *steps] for each in _in_both_versions(path))
                if not any(each.has(path) for path in places for each in owners):
                    obj = apply_changes(obj, [[[*path, *steps]]])
    return obj


def _components(obj: KubeObject) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Parts of an object that may have roles, each with its path."""
    spec = mapping(obj.get("spec"))
    if obj.get("kind") == COMPONENT:
        yield ["spec"], spec
    for each in map(mapping, items(spec.get("components"))):
        if isinstance(each.get("name"), str):
            yield ["spec", "components", {"name": each["name"]}], each
    for name, service in mapping(spec.get("services")).items():
        yield ["spec", "services", name], mapping(service)


def _in_both_versions(path: Path) -> list[Path]:
    if len(path) == 1:
        return [path]
    name = path[-1] if isinstance(path[-1], str) else path[-1]["name"]
    return [["spec", "components", {"name": name}], ["spec", "services", name]]
