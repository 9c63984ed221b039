"""Roles of a replica that spans nodes: they state what is so anyway, so that what is not so is refused."""

from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.untrusted.reading import integer, items, mapping
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import COMPONENT, GRAPH, RuleSet, Violations, broken, listed
from dynamo_shared.api.validation.view import ComponentView

ROLES = RuleSet("Roles", (GRAPH, COMPONENT), "always")

LEADER, WORKER = "leader", "worker"
_NAMES = (LEADER, WORKER)

_ONE_NODE = "roles are parts of a replica that spans nodes: set multinode, or leave roles out"
_NO_ROLE = "{value} is not a role; one of 'leader', 'worker'"
_TWICE = "{name} is the role of [{first}] already; name each role once"
_LACKS = "lacks {missing}: name leader and worker, or leave roles out"


@ROLES.rule(_ONE_NODE, _NO_ROLE, _TWICE, _LACKS)
def roles_are_leader_and_worker(component: ComponentView, _facts: Facts) -> Violations:
    """Only a replica that spans nodes has roles: one leader and one worker, each named once, or none named."""
    roles = items(component.spec.get("roles"))
    if not roles:
        return
    if not isinstance(component.spec.get("multinode"), dict):
        yield component.field("roles"), _ONE_NODE
        return
    first: dict[str, int] = {}
    for index, role in enumerate(roles):
        name = mapping(role).get("name")
        if not isinstance(name, str):
            continue
        if name not in _NAMES:
            yield component.field("roles", index, "name"), _NO_ROLE.format(value=shown(name))
        elif first.setdefault(name, index) != index:
            yield component.field("roles", index, "name"), _TWICE.format(name=shown(name), first=first[name])
    missing = [name for name in _NAMES if name not in first]
    if missing:
        yield component.field("roles"), _LACKS.format(missing=listed(missing))


@ROLES.rule("{value} is not allowed for the {name} of {nodes} nodes: write {count}, which follows from multinode")
def roles_have_the_pods_of_their_nodes(component: ComponentView, _facts: Facts) -> Violations:
    """A replica has one leader, and a worker on each other node. Admission fills in what is left out."""
    if not isinstance(component.spec.get("multinode"), dict):
        return
    for index, role in enumerate(items(component.spec.get("roles"))):
        name, given = mapping(role).get("name"), integer(mapping(role).get("replicas"))
        count = pods_of_role(name, component.nodes)
        # Less than one is the schema's to report.
        if count is not None and given is not None and given >= 1 and given != count:
            yield broken(
                component.field("roles", index, "replicas"), value=given, name=name, nodes=component.nodes, count=count
            )


@ROLES.rule("no {component} takes a pod template for one role: write {template}, which the pods of all roles get")
def roles_have_no_template(component: ComponentView, _facts: Facts) -> Violations:
    """The pods of all roles are made of the component's own template."""
    template = "extraPodSpec of the service" if component.is_alpha else "podTemplate of the component"
    for index, role in enumerate(items(component.spec.get("roles"))):
        if mapping(role).get("podTemplate") is not None:
            yield broken(
                component.field("roles", index, "podTemplate"), component=component.words.component, template=template
            )


def pods_of_role(name: object, nodes: int) -> int | None:
    """Pods of a role in one replica of so many nodes; None for what is not a role."""
    if name == LEADER:
        return 1
    return nodes - 1 if name == WORKER else None
