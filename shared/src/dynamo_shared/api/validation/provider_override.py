"""Provider overrides, which a graph writes in Grove's own fields. The platform accepts topology constraints, and how
many replicas of a component start together.

The rules are those of Dynamo 1.5, and for the number of replicas of 1.6. All other fields of Grove, such as
`rollingUpdate`, are refused.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from dynamo_shared.api import min_available
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.replica_limits import INT32_MAX
from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import below, entries, integer, mapping, nodes, text
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import COMPONENT, GRAPH, UPDATED, RuleSet, Violations, broken, path
from dynamo_shared.api.validation.view import ComponentView, GraphView

PROVIDER_OVERRIDES = RuleSet("Provider overrides", (GRAPH,))
CHANGES_OF_PROVIDER_OVERRIDES = RuleSet("Provider overrides", (GRAPH,), UPDATED)
PROVIDER_OVERRIDES_ALONE = RuleSet("Provider overrides", (COMPONENT,))

FIELD: Final = "providerOverride"
API_VERSION: Final = "grove.io/v1alpha1"
#: Grove's types that an override is a part of: the set of a graph, a scaling group, a clique.
SET, GROUP, CLIQUE = "PodCliqueSet", "PodCliqueScalingGroupConfig", "PodCliqueTemplateSpec"
CONSTRAINT: Final = "topologyConstraint"
#: Path of the constraint within the override's value, by Grove's type.
PATHS: dict[str, tuple[str, ...]] = {SET: ("spec", "template", CONSTRAINT), GROUP: (CONSTRAINT,), CLIQUE: (CONSTRAINT,)}
#: Path of the number of replicas that start together, by Grove's type, in the override of a component.
MINIMA = {GROUP: min_available.OF_GROUP, CLIQUE: min_available.OF_CLIQUE}
#: Refused fields that are reported for one level of a value. A tenant may write thousands.
_REPORTED = 10


class Override(NamedTuple):
    """An override, its location, and Grove's types that it may be a part of."""

    at: Location
    value: dict[str, Any]
    targets: tuple[str, ...]
    #: "" for the graph.
    component: str = ""
    #: "" for the component as a whole.
    role: str = ""

    @property
    def path(self) -> tuple[str, ...]:
        """Path of the constraint within `value`."""
        return PATHS[self.targets[0]]

    @property
    def constraint(self) -> Any:
        """The topology constraint as written; None if absent."""
        return constraint_in(self.value.get("value"), self.targets[0])

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """Paths within `value` that a user may write."""
        minima = (MINIMA[each] for each in self.targets if self.component and not self.role)
        return self.path, *minima

    @property
    def minimum(self) -> tuple[Location, Any] | None:
        """Location and written value of the number of replicas that start together; None if the override has none."""
        value = self.value.get("value")
        written = ((each, below(value, each)) for each in self.paths[1:])
        return next((((*self.at, "value", *each), number) for each, number in written if number is not None), None)


def constraint_in(value: Any, target: str) -> Any:
    """The topology constraint in the value of an override of this type; None if absent."""
    return below(value, PATHS[target])


def overrides_of(graph: GraphView) -> Iterator[Override]:
    """The overrides of a graph, of its components and of their roles."""
    if isinstance(value := graph.spec.get(FIELD), dict):
        yield Override(("spec", FIELD), value, (SET,))
    for component in graph.components:
        yield from overrides_of_component(component)


def overrides_of_component(component: ComponentView) -> Iterator[Override]:
    """The overrides of a component and of its roles."""
    if isinstance(value := component.spec.get(FIELD), dict):
        between_pods = component.gms is not None and component.gms.inter_pod
        is_group = component.nodes > 1 or between_pods or component.is_forced_group
        # Only v1beta1 has a field that forces a scaling group.
        targets = (GROUP,) if is_group else (CLIQUE, GROUP) if component.is_alpha else (CLIQUE,)
        yield Override(component.field(FIELD), value, targets, component.name)
    for index, role in entries(component.spec.get("roles")):
        if isinstance(value := role.get(FIELD), dict):
            at, role_name = component.field("roles", index, FIELD), text(role.get("name"))
            yield Override(at, value, (CLIQUE,), component.name, role_name or f"[{index}]")


def target_of(component: dict[str, Any]) -> str:
    """Grove's type for a component of v1beta1."""
    between_pods = below(component, ("experimental", "gpuMemoryService", "mode")) == "InterPod"
    forced = below(component, ("experimental", "grove", "forceScalingGroup")) is True
    return GROUP if nodes(component.get("multinode")) > 1 or between_pods or forced else CLIQUE


_OTHER_API = f"{{value}} is not supported: write {API_VERSION}"
_OTHER_TARGET = "{value} is not the type that Grove uses here: write {target}, or leave it out"


@PROVIDER_OVERRIDES.rule(_OTHER_API, _OTHER_TARGET)
def overrides_are_in_the_words_of_grove(graph: GraphView, _facts: Facts) -> Violations:
    """An override is a part of an object of Grove: a PodCliqueSet for the graph, a scaling group or a clique for a component."""
    for override in overrides_of(graph):
        version, target = text(override.value.get("apiVersion")), text(override.value.get("target"))
        if version and version != API_VERSION:
            yield (*override.at, "apiVersion"), _OTHER_API.format(value=shown(version))
        elif target and target not in override.targets:
            message = _OTHER_TARGET.format(value=shown(target), target=override.targets[0])
            yield (*override.at, "target"), message


_NOT_ALLOWED = "cannot be set here, because the platform sets it: only {fields} can be set{instead}"
_MINIMUM = "; write minAvailable in the override of the {component}, for all of its roles"
_NO_DOMAIN = "required: an object with the domains that pods share, for example pack with required: rack"
_WRONG_TYPE = "must be {kind}"


@PROVIDER_OVERRIDES.rule(_NOT_ALLOWED, _NO_DOMAIN, _WRONG_TYPE)
def overrides_are_constraints(graph: GraphView, _facts: Facts) -> Violations:
    """An override has only a topology constraint; that of a component may also have minAvailable.

    Within the constraint, fields of a later Grove are accepted.
    """
    for override in overrides_of(graph):
        value = override.value.get("value")
        if not isinstance(value, dict):
            continue
        instead = _MINIMUM.format(component=graph.words.component) if _asks_for_minimum(override, value) else ""
        message = _NOT_ALLOWED.format(
            fields=" and ".join(path(("value", *each)) for each in override.paths), instead=instead
        )
        yield from ((at, message) for at in _others(value, override.paths, (*override.at, "value")))
        if override.minimum is None or override.constraint is not None:
            yield from _constraint(override)


def _asks_for_minimum(override: Override, value: dict[str, Any]) -> bool:
    """Whether the override of a role sets how many replicas start together; these are replicas of the whole component."""
    return bool(override.role) and min_available.min_available_path({FIELD: {"value": value}}) != (min_available.FIELD,)


def _others(value: Any, paths: Iterable[tuple[str, ...]], at: Location) -> Iterator[Location]:
    """Locations of the fields of an object that are on none of the paths."""
    steps = {each[0]: [other[1:] for other in paths if other[0] == each[0] and other[1:]] for each in paths}
    for name in sorted(islice((each for each in mapping(value) if each not in steps), _REPORTED)):
        yield *at, name
    for step, inner in steps.items():
        if inner:
            yield from _others(mapping(value).get(step), inner, (*at, step))


_NO_NUMBER = "{value} is not a number of replicas: write a whole number, 1 or more"
_TWICE = "minAvailable of the {component} sets the same number: leave one of the two out"


@PROVIDER_OVERRIDES.rule(_NO_NUMBER, _TWICE)
def replicas_that_start_together_are_a_number(graph: GraphView, _facts: Facts) -> Violations:
    """The number of replicas that start together is set only once: as a field, or in the override."""
    for component in graph.components:
        for override in overrides_of_component(component):
            if (minimum := override.minimum) is None:
                continue
            at, given = minimum
            number = integer(given)
            if number is None or not 1 <= number <= INT32_MAX:
                yield at, _NO_NUMBER.format(value=shown(given))
            elif component.spec.get(min_available.FIELD) is not None:
                yield at, _TWICE.format(component=component.words.component)


#: Fields of a constraint that all versions of Grove read in the same way.
_NAMES, _PACK = ("topologyName", "packDomain"), "pack"


def _constraint(override: Override) -> Violations:
    constraint, at = override.constraint, (*override.at, "value", *override.path)
    if not isinstance(constraint, dict) or not constraint.keys() - {"topologyName"}:
        yield at, _NO_DOMAIN
        return
    for name in _NAMES:
        if name in constraint and not isinstance(constraint[name], str):
            yield (*at, name), _WRONG_TYPE.format(kind="a string")
    if _PACK in constraint and not isinstance(constraint[_PACK], dict):
        yield (*at, _PACK), _WRONG_TYPE.format(kind="an object with required, preferred or both")
    pack = mapping(constraint.get(_PACK))
    for name in ("required", "preferred"):
        if name in pack and not isinstance(pack[name], str):
            yield (*at, _PACK, name), _WRONG_TYPE.format(kind="a string")


@PROVIDER_OVERRIDES.rule(
    "cannot be combined with a topologyConstraint of the graph or its {components}: write either constraints or overrides"
)
def constraints_are_written_in_one_way(graph: GraphView, _facts: Facts) -> Violations:
    """A graph sets its constraints either as fields of the graph or as provider overrides."""
    if any(spec.get(CONSTRAINT) is not None for spec in (graph.spec, *(each.spec for each in graph.components))):
        for override in overrides_of(graph):
            if override.constraint is not None:
                yield broken(override.at, components=graph.words.components)


@PROVIDER_OVERRIDES.rule(
    "the GPU memory service of this {component} runs in its own pods, so no role has a clique: write the override "
    "for the {component}"
)
def roles_with_an_override_have_a_clique(graph: GraphView, _facts: Facts) -> Violations:
    """If a component serves its GPU memory between pods, it has cliques for its ranks, and none for its roles."""
    for component in graph.components:
        if component.gms is not None and component.gms.inter_pod:
            for override in overrides_of_component(component):
                if override.role:
                    yield broken(override.at, component=component.words.component)


@PROVIDER_OVERRIDES_ALONE.rule(
    "only {components} of a DynamoGraphDeployment have this field: write a DynamoGraphDeployment, or leave it out"
)
def overrides_belong_to_graphs(component: ComponentView, _facts: Facts) -> Violations:
    """Grove does not run component deployments, so they have no overrides."""
    for override in overrides_of_component(component):
        yield broken(override.at, components=component.words.components)


@CHANGES_OF_PROVIDER_OVERRIDES.rule(
    "cannot be added, removed or changed while Grove runs the graph: recreate the DynamoGraphDeployment", added=True
)
def overrides_stay(graph: GraphView, old: GraphView, facts: Facts) -> Violations:
    """Grove does not change the constraints of a set, and would refuse each later update of a graph with changed constraints."""
    if not (graph.of_grove(facts.grove) and old.of_grove(facts.grove)):
        return
    before, now = ({(each.component, each.role): each for each in overrides_of(view)} for view in (old, graph))
    for key, override in {**before, **now}.items():
        then, here = before.get(key), now.get(key)
        if (then and _newest(then.constraint)) != (here and _newest(here.constraint)):
            yield broken(override.at)


def _newest(constraint: Any) -> Any:
    """The constraint as Grove reads it: `pack.required` takes precedence over the deprecated `packDomain`."""
    if not isinstance(constraint, dict) or not isinstance(constraint.get("packDomain"), str):
        return constraint
    others = {name: value for name, value in constraint.items() if name != "packDomain"}
    return {**others, _PACK: {"required": constraint["packDomain"], **mapping(constraint.get(_PACK))}}
