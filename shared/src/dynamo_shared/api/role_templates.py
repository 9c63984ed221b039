"""Pod templates of the roles of a replica that spans nodes: its leader, which serves, and its workers.

A role's own template takes the place of the component's, as from Dynamo 1.6 on ("Role-Specific Pod Templates"). There both roles
have one or none; here one of them may go by the component's.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.untrusted.reading import items, mapping, nodes

LEADER: Final = "leader"
WORKER: Final = "worker"
ROLES: Final = (LEADER, WORKER)
FIELD: Final = "podTemplate"


def own_template(component: Mapping[str, Any], role: str) -> KubeObject | None:
    """The template that a role of a component has of its own; None where it has none."""
    for each in items(component.get("roles")):
        if isinstance(each, dict) and each.get("name") == role and isinstance(each.get(FIELD), dict):
            template: KubeObject = each[FIELD]
            return template
    return None


def has_own_templates(component: Mapping[str, Any]) -> bool:
    """Whether a role of a component has a template of its own: commands of all roles are the author's then."""
    return any(own_template(component, role) is not None for role in ROLES)


def serving_template(component: Mapping[str, Any]) -> KubeObject:
    """The template of the pods that serve: the leader's, which is the component's where it has none of its own."""
    return own_template(component, LEADER) or mapping(component.get(FIELD))


def templates(component: Mapping[str, Any]) -> list[tuple[KubeObject, int]]:
    """The templates of one replica of a component (v1beta1), and how many of its pods are of each."""
    count, serving = max(1, nodes(component.get("multinode"))), serving_template(component)
    workers = own_template(component, WORKER)
    if count < 2 or not has_own_templates(component):
        return [(serving, count)]
    return [(serving, 1), (mapping(component.get(FIELD)) if workers is None else workers, count - 1)]


def with_templates(component: KubeObject, change: Callable[[KubeObject], KubeObject]) -> KubeObject:
    """A component with its template changed, if it has one, and those that roles have of their own."""
    changed = {**component}
    if component.get(FIELD) is not None:
        changed[FIELD] = change(component[FIELD])
    if has_own_templates(component):
        changed["roles"] = [
            {**role, FIELD: change(role[FIELD])} if isinstance(mapping(role).get(FIELD), dict) else role
            for role in component["roles"]
        ]
    return changed


def all_templates(component: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The template of a component, and those of its roles, whether its pods are made of them or not. Reads any junk."""
    for owner in (component, *map(mapping, items(component.get("roles")))):
        yield mapping(owner.get(FIELD))
