"""Pod templates of the roles of a multi-node replica: the leader, which serves, and the workers.

A role's template replaces the component's (Dynamo 1.6, "Role-Specific Pod Templates"). There, both roles have a template
or none; here, a role without a template uses the component's.
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
    """The template of a role of a component; None without one."""
    for each in items(component.get("roles")):
        if isinstance(each, dict) and each.get("name") == role and isinstance(each.get(FIELD), dict):
            template: KubeObject = each[FIELD]
            return template
    return None


def has_own_templates(component: Mapping[str, Any]) -> bool:
    """Whether a role of a component has a template: the author then writes the commands of all roles."""
    return any(own_template(component, role) is not None for role in ROLES)


def serving_template(component: Mapping[str, Any]) -> KubeObject:
    """The template of the pods that serve: the leader's, otherwise the component's."""
    return own_template(component, LEADER) or mapping(component.get(FIELD))


def templates(component: Mapping[str, Any]) -> list[tuple[KubeObject, int]]:
    """The templates of one replica of a v1beta1 component, each with its number of pods."""
    count, serving = max(1, nodes(component.get("multinode"))), serving_template(component)
    workers = own_template(component, WORKER)
    if count < 2 or not has_own_templates(component):
        return [(serving, count)]
    return [(serving, 1), (mapping(component.get(FIELD)) if workers is None else workers, count - 1)]


def with_templates(component: KubeObject, change: Callable[[KubeObject], KubeObject]) -> KubeObject:
    """A component with `change` applied to its template, if it has one, and to those of its roles."""
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
    """The templates of a component and of its roles, also unused ones. Accepts any value."""
    for owner in (component, *map(mapping, items(component.get("roles")))):
        yield mapping(owner.get(FIELD))
