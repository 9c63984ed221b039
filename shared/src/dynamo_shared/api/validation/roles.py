"""Roles of a replica that spans nodes: they state what follows from multinode, and may have their own pod templates."""

from collections.abc import Iterator

from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.objects import MAIN
from dynamo_shared.api.role_templates import LEADER, WORKER
from dynamo_shared.api.role_templates import ROLES as ROLE_NAMES
from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import below, entries, integer, items, mapping
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import COMPONENT, GRAPH, RuleSet, Violations, broken, listed
from dynamo_shared.api.validation.view import ComponentView

ROLES = RuleSet("Roles", (GRAPH, COMPONENT))

_ONE_NODE = "roles are parts of a replica that spans nodes: set multinode, or leave roles out"
_NO_ROLE = "{value} is not a role; one of 'leader', 'worker'"
_TWICE = "{name} is already the role of [{first}]: name each role once"
_LACKS = "lacks {missing}: name leader and worker, or leave roles out"


@ROLES.rule(_ONE_NODE, _NO_ROLE, _TWICE, _LACKS, of="roles")
def roles_are_leader_and_worker(component: ComponentView, _facts: Facts) -> Violations:
    """Only a replica that spans nodes has roles: either exactly one leader and one worker, or none."""
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
        if name not in ROLE_NAMES:
            yield component.field("roles", index, "name"), _NO_ROLE.format(value=shown(name))
        elif first.setdefault(name, index) != index:
            yield component.field("roles", index, "name"), _TWICE.format(name=shown(name), first=first[name])
    missing = [name for name in ROLE_NAMES if name not in first]
    if missing:
        yield component.field("roles"), _LACKS.format(missing=listed(missing))


@ROLES.rule("{value} is not allowed for the {name} of {nodes} nodes: write {count}, which follows from multinode")
def roles_have_the_pods_of_their_nodes(component: ComponentView, _facts: Facts) -> Violations:
    """A replica has one leader, and a worker on each other node. Admission adds omitted numbers."""
    if not isinstance(component.spec.get("multinode"), dict):
        return
    for index, role in entries(component.spec.get("roles")):
        name, given = role.get("name"), integer(role.get("replicas"))
        count = pods_of_role(name, component.nodes)
        # The schema reports numbers below one.
        if count is not None and given is not None and given >= 1 and given != count:
            yield broken(
                component.field("roles", index, "replicas"), value=given, name=name, nodes=component.nodes, count=count
            )


_LACKS_TEMPLATE = (
    "required: another role has its own template, and the {component} has no template for this role; write it "
    "here, or write {template}"
)
_OF_NO_ROLE = "cannot be combined with templates of all roles, which replace it: leave it out"
_NO_MAIN = "needs a container main with an image: the platform creates the pods of a role from this template alone"
_CHANGES_COMMANDS = (
    "cannot be combined with pod templates of roles, whose commands the platform does not change: leave it out, or "
    "write {template} for all"
)
#: Fields of a v1alpha1 service that its pod template is made from.
_OF_PODS = (
    *("extraPodSpec", "extraPodMetadata", "resources", "envs", "envFromSecret"),
    *("livenessProbe", "readinessProbe", "volumeMounts", "frontendSidecar"),
)


@ROLES.rule(_LACKS_TEMPLATE, _OF_NO_ROLE, _NO_MAIN, _CHANGES_COMMANDS, of="roles")
def templates_of_roles_are_whole(component: ComponentView, _facts: Facts) -> Violations:
    """The pods of a role are created from the role's template, or else from the component's.

    If a role has its own template, the platform adds no engine flags to its commands.
    """
    own = component.role_templates
    if not own:
        return
    name = "extraPodSpec" if component.is_alpha else "podTemplate"
    words = {"component": component.words.component, "template": f"{name} of the {component.words.component}"}
    if len(own) == len(ROLE_NAMES):
        for field in _OF_PODS if component.is_alpha else (name,):
            if component.spec.get(field) and not (field == "volumeMounts" and _is_cache_alone(component)):
                yield component.field(field), _OF_NO_ROLE
    elif not isinstance(component.spec.get(name), dict):
        for at in _without_template(component):
            yield at, _LACKS_TEMPLATE.format(**words)
    for template, at in own.values():
        containers = entries(below(template, ("spec", "containers")))
        if not any(each.get("image") for _, each in containers if each.get("name") == MAIN):
            yield (*at, "spec", "containers"), _NO_MAIN
    for feature in (component.gms, component.failover):
        if feature is not None:
            yield feature.at, _CHANGES_COMMANDS.format(**words)


def _is_cache_alone(component: ComponentView) -> bool:
    """Whether a v1alpha1 service mounts only its compilation cache: the pods of all roles get that."""
    return all(mapping(each).get("useAsCompilationCache") is True for each in items(component.spec.get("volumeMounts")))


def _without_template(component: ComponentView) -> Iterator[Location]:
    for index, role in entries(component.spec.get("roles")):
        if role.get("name") in ROLE_NAMES and not isinstance(role.get("podTemplate"), dict):
            yield component.field("roles", index, "podTemplate")


def pods_of_role(name: object, nodes: int) -> int | None:
    """Pods of a role in one replica of `nodes` nodes; None if `name` is not a role."""
    if name == LEADER:
        return 1
    return nodes - 1 if name == WORKER else None
