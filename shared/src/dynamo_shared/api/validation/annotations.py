"""Annotations that change how pods are created: a value that would silently have no effect is refused."""

import re
from collections.abc import Generator
from itertools import islice
from typing import Any

from dynamo_shared.api import semver
from dynamo_shared.api.contracts import Autoscaling, contract_checks
from dynamo_shared.api.contracts.base import ContractModel
from dynamo_shared.api.contracts.scaling_policy import ANY, ScalingPolicy
from dynamo_shared.api.embedded.rules import objects
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.field_errors import shown, suggestion_for
from dynamo_shared.api.registry.annotations import (
    AUTOSCALING,
    CATALOG,
    DEPLOYMENT_MAX_SURGE,
    DEPLOYMENT_MAX_UNAVAILABLE,
    DEPLOYMENT_STRATEGY,
    DISABLE_IMAGE_PULL_SECRET_DISCOVERY,
    DISCOVERY_BACKEND,
    ENABLE_GROVE,
    ENABLE_METRICS,
    GROVE_UPDATE_STRATEGIES,
    GROVE_UPDATE_STRATEGY,
    KAI_SCHEDULER_QUEUE,
    KUBE_DISCOVERY_MODE,
    OPERATOR_ORIGIN_VERSION,
    PLANNER_CONFIG,
    SCALING_POLICY,
    VLLM_DISTRIBUTED_EXECUTOR_BACKEND,
    WORKLOAD_PROVIDER,
)
from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.limits import SETTINGS
from dynamo_shared.api.untrusted.reading import annotation, mapping
from dynamo_shared.api.untrusted.yaml_text import documents
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import ALPHA, COMPONENT, GRAPH, RuleSet, Violations, broken
from dynamo_shared.api.validation.view import ComponentView, GraphView, of_each_role
from dynamo_shared.api.workload_provider import OF_GROVE

ANNOTATIONS = RuleSet("Annotations", (GRAPH,))
ANNOTATIONS_OF_COMPONENTS = RuleSet("Annotations", (GRAPH, COMPONENT))


@ANNOTATIONS.rule("{value} is not a semantic version such as 1.2.0; leave it out, and the platform sets it")
def origin_version_is_a_version(graph: GraphView, _facts: Facts) -> Violations:
    """The version that first reconciled a graph must be a semantic version, because defaults depend on it."""
    value = annotation(graph.annotations, OPERATOR_ORIGIN_VERSION)
    if value is not None and semver.parse(value) is None:
        yield broken(("metadata", "annotations", OPERATOR_ORIGIN_VERSION), value=shown(value))


@ANNOTATIONS.rule("{problem}", added=True)  # the messages for all objects
def graph_labels_and_annotations_can_be_written(graph: GraphView, _facts: Facts) -> Violations:
    """The labels and annotations for a graph's pods must have valid keys, and the labels valid values."""
    for at, problem in objects.metadata(graph.spec):
        yield ("spec", *at), problem


@ANNOTATIONS_OF_COMPONENTS.rule("{problem}", versions=(ALPHA,), added=True)  # the messages for all objects
def component_labels_and_annotations_can_be_written(component: ComponentView, _facts: Facts) -> Violations:
    """The labels and annotations of a service and its pods follow this rule, too; in v1beta1 as part of pod templates."""
    for at, problem in objects.metadata(component.spec):
        yield component.field(*at), problem
    for at, problem in objects.metadata(mapping(component.spec.get("extraPodMetadata"))):
        yield component.field("extraPodMetadata", *at), problem


_NO_EXECUTOR = "{value} is not allowed; one of 'mp', 'ray'"
_NO_MODE = "{value} is not allowed; one of 'pod', 'container'"


@ANNOTATIONS.rule(_NO_EXECUTOR, _NO_MODE)
def graph_annotations_have_known_values(graph: GraphView, _facts: Facts) -> Violations:
    """On graphs and pods, the annotations for vLLM's multi-node backend and for the unit of discovery are enums."""
    yield from _known_values(graph.annotations, ("metadata", "annotations"))
    yield from _known_values(mapping(graph.spec.get("annotations")), ("spec", "annotations"))


@ANNOTATIONS_OF_COMPONENTS.rule(_NO_EXECUTOR, _NO_MODE)
@of_each_role
def component_annotations_have_known_values(component: ComponentView, _facts: Facts) -> Violations:
    """On components and their pods, these annotations are enums too."""
    for values, at in component.annotations:
        if values:
            yield from _known_values(values, at)


_NO_SUCH_STRATEGY = "{value} is not allowed; one of 'RollingRecreate', 'OnDelete'"
_NOT_COHERENT = (
    "'Coherent' is not supported: during such an update Grove accepts no other number of replicas, and the "
    "platform does not wait until the update ends; write 'RollingRecreate', or leave it out"
)


@ANNOTATIONS.rule(_NO_SUCH_STRATEGY, _NOT_COHERENT, added=True)
def grove_update_strategy_is_known(graph: GraphView, _facts: Facts) -> Violations:
    """Grove's update strategy is an enum with Grove's spelling; with another value, Grove would delete pods that should stay."""
    value = annotation(graph.annotations, GROVE_UPDATE_STRATEGY)
    if value is not None and value not in GROVE_UPDATE_STRATEGIES:
        message = _NOT_COHERENT if value == "Coherent" else _NO_SUCH_STRATEGY.format(value=shown(value))
        yield ("metadata", "annotations", GROVE_UPDATE_STRATEGY), message


_NO_PROVIDER = "{value} is not allowed; one of 'grove', 'component'"
_NO_GROVE_HERE = "'grove' needs Grove, which runs no graphs on this platform: leave it out, or install Grove first"


@ANNOTATIONS.rule(_NO_PROVIDER, _NO_GROVE_HERE)
def workload_provider_is_there(graph: GraphView, facts: Facts) -> Violations:
    """The workload provider of a graph is an enum; the value grove requires that Grove runs graphs on this platform."""
    value = annotation(graph.annotations, WORKLOAD_PROVIDER)
    if value is not None and not graph.provider:
        yield ("metadata", "annotations", WORKLOAD_PROVIDER), _NO_PROVIDER.format(value=shown(value))
    if graph.provider == OF_GROVE and facts.grove is False:
        yield ("metadata", "annotations", WORKLOAD_PROVIDER), _NO_GROVE_HERE


@ANNOTATIONS.rule("component {name} is a planner, and this annotation enables the planner service: keep one of them")
def a_graph_has_one_planner(graph: GraphView, _facts: Facts) -> Violations:
    """Two planners would revert each other's decisions, so a graph uses the planner service or a planner component, not both."""
    if annotation(graph.annotations, PLANNER_CONFIG):
        for component in graph.components:
            if component.type == "planner":
                yield broken(("metadata", "annotations", PLANNER_CONFIG), name=component.name)


_NO_MARGIN = "{value} is neither a number of pods nor a percentage; write 1 or 25%"
_MARGIN = re.compile(r"[0-9]{1,9}%?")
_ABOVE_100_PERCENT = "{value} is more than all pods: write at most 100%"


@ANNOTATIONS.rule(_NO_MARGIN, _ABOVE_100_PERCENT, added=True)
def graph_margins_are_numbers(graph: GraphView, _facts: Facts) -> Violations:
    """Surge and unavailability for rolling updates of all components are numbers of pods or percentages."""
    yield from _margins(mapping(graph.spec.get("annotations")), ("spec", "annotations"))


@ANNOTATIONS_OF_COMPONENTS.rule(_NO_MARGIN, _ABOVE_100_PERCENT, added=True)
@of_each_role
def component_margins_are_numbers(component: ComponentView, _facts: Facts) -> Violations:
    """Surge and unavailability of one component, in the annotations of its pods, are numbers of pods or percentages."""
    values, at = component.template_annotations
    if values:
        yield from _margins(values, at)


_NO_RULES = "{value} is not a map of components to their autoscalers, as YAML or JSON"
_NOT_ADAPTED = "{component} has no {adapter}, which the autoscaler scales: enable it"
_NO_COMPONENT = "is not a component of this graph"
_NO_AUTOSCALING = "{problem}"  # the messages of the contract


@ANNOTATIONS.rule(_NO_RULES, _NOT_ADAPTED, _NO_COMPONENT, _NO_AUTOSCALING, added=True)
def autoscalers_can_be_made(graph: GraphView, _facts: Facts) -> Violations:
    """Autoscalers in the annotation follow its contract, and each component with an autoscaler has a scaling adapter."""
    adapted = {component.name: component.adapted for component in graph.components}
    for name in (yield from _by_component(graph, AUTOSCALING, Autoscaling, _NO_RULES)):
        at = ("metadata", "annotations", AUTOSCALING, name)
        if name not in adapted:
            yield at, _NO_COMPONENT
        elif not adapted[name]:
            yield at, _NOT_ADAPTED.format(component=name, adapter=graph.words.adapter)


_NO_POLICY = "{value} is not a map of components to their limits, as YAML or JSON"
_NO_LIMITED = "is not a component of this graph; * selects all components"
_NO_LIMIT = "{problem}"  # the messages of the contract


@ANNOTATIONS.rule(_NO_POLICY, _NO_LIMITED, _NO_LIMIT, added=True)
def scaling_policy_is_understood(graph: GraphView, _facts: Facts) -> Violations:
    """Limits of scale commands in the annotation follow its contract; with a mistake in them, nothing would scale."""
    names = {ANY, *(component.name for component in graph.components)}
    for name in (yield from _by_component(graph, SCALING_POLICY, ScalingPolicy, _NO_POLICY)):
        if name not in names:
            yield ("metadata", "annotations", SCALING_POLICY, name), _NO_LIMITED


def _by_component(
    graph: GraphView, name: str, model: type[ContractModel], not_a_map: str
) -> Generator[tuple[Location, str], None, dict[str, Any]]:
    """The annotation's values by component; {} if it is absent. Violations: errors by its contract, or no map."""
    at, given = ("metadata", "annotations", name), _map_of(graph, name)
    if given is None:
        yield at, not_a_map.format(value=shown(annotation(graph.annotations, name)))
        return {}
    for location, problem in contract_checks.problems(model, given):
        yield (*at, *location), problem
    return given


def _map_of(graph: GraphView, name: str) -> dict[str, Any] | None:
    """The value of an annotation, {} if it is absent; None if it is not a map."""
    value = annotation(graph.annotations, name)
    if value is None:
        return {}
    try:
        read = documents(value, SETTINGS) or [{}]
    except InvalidManifest:
        return None
    # Nothing would read a second document.
    return read[0] if len(read) == 1 and isinstance(read[0], dict) else None


ANNOTATIONS_WITHOUT_EFFECT = RuleSet("Annotations", (GRAPH,))
ANNOTATIONS_OF_COMPONENTS_WITHOUT_EFFECT = RuleSet("Annotations", (GRAPH, COMPONENT))

_OF_UPDATES = (DEPLOYMENT_STRATEGY, DEPLOYMENT_MAX_SURGE, DEPLOYMENT_MAX_UNAVAILABLE)
#: Annotations that are read only from pods.
OF_PODS = (*_OF_UPDATES, DISABLE_IMAGE_PULL_SECRET_DISCOVERY)
_BACKENDS = ("kubernetes", "etcd")
_STRATEGIES = ("RollingUpdate", "Recreate")

_NOT_ON_GRAPHS = (
    "has no effect here: write it in spec.annotations for all components, or in the pod template of one component"
)
_NO_BACKEND = (
    "{value} is not a known backend, so pods get no rights to discover each other; one of 'kubernetes', 'etcd'"
)
_NO_QUEUE = (
    "has no effect: only the pods of graphs that Grove runs wait in queues of KAI, and Grove does not run this graph"
)
_NO_GROVE = "has no effect: only Grove uses it, and Grove does not run this graph"
_NO_UPDATE = "has no effect: Grove runs this graph, and replaces its pods in its own way"
_NO_SWITCH = "{value} has no effect: the platform reads only '{switch}'"
#: Annotations with only one effective value, and that value.
_SWITCHES = ((ENABLE_METRICS, "false"), (DISABLE_IMAGE_PULL_SECRET_DISCOVERY, "true"))
_NO_STRATEGY = "{value} is not a known strategy, so the platform uses RollingUpdate; one of 'RollingUpdate', 'Recreate'"
_MISSPELT = "has no effect: the platform knows no such annotation{suggestion}"
_KNOWN = tuple(dict.fromkeys(entry.name for entry in CATALOG.entries))
#: Limit of the unknown annotations of one place that are compared, because a comparison takes half a millisecond.
_COMPARED = 10


#: Introduced after Dynamo 1.5: one object of LeaderWorkerSet's controller for all roles of a graph.
_DISAGGREGATED_SET = "nvidia.com/enable-disaggregatedset"


@ANNOTATIONS_WITHOUT_EFFECT.rule(
    "has no effect: this platform uses no DisaggregatedSet; without Grove each component has a Deployment or a LeaderWorkerSet",
    added=True,
)
def no_disaggregated_set_runs_graphs(graph: GraphView, _facts: Facts) -> Violations:
    """Either Grove runs the whole graph, or Deployments and LeaderWorkerSets run its components."""
    if str(graph.annotations.get(_DISAGGREGATED_SET, "")).lower() == "true":
        yield broken(("metadata", "annotations", _DISAGGREGATED_SET))


@ANNOTATIONS_WITHOUT_EFFECT.rule("has no effect: the annotation {annotation} selects {provider}", added=True)
def grove_is_not_switched_off_for_graphs_that_it_must_run(graph: GraphView, _facts: Facts) -> Violations:
    """The workload provider annotation takes precedence over the annotation that turns Grove off."""
    if graph.provider == OF_GROVE and graph.opts_out:
        yield broken(("metadata", "annotations", ENABLE_GROVE), annotation=WORKLOAD_PROVIDER, provider=OF_GROVE)


@ANNOTATIONS_WITHOUT_EFFECT.rule(
    _NOT_ON_GRAPHS, _NO_QUEUE, _NO_GROVE, _NO_SWITCH, _NO_BACKEND, _NO_STRATEGY, _NO_UPDATE, _MISSPELT, added=True
)
def graph_annotations_have_an_effect(graph: GraphView, facts: Facts) -> Violations:
    """Update strategy and pull secret annotations are read only from pods; discovery backends and strategies have known names."""
    for name in OF_PODS:
        if annotation(graph.annotations, name) is not None:
            yield ("metadata", "annotations", name), _NOT_ON_GRAPHS
    if graph.of_grove(facts.grove) is False:
        if annotation(graph.annotations, KAI_SCHEDULER_QUEUE):
            yield ("metadata", "annotations", KAI_SCHEDULER_QUEUE), _NO_QUEUE
        if annotation(graph.annotations, GROVE_UPDATE_STRATEGY):
            yield ("metadata", "annotations", GROVE_UPDATE_STRATEGY), _NO_GROVE
    yield from _unknown_switch(graph.annotations, ("metadata", "annotations"), _SWITCHES[:1])
    yield from _unknown_switch(mapping(graph.spec.get("annotations")), ("spec", "annotations"))
    yield from _unknown_backend(graph.annotations, ("metadata", "annotations"))
    yield from _misspelt(graph.annotations, ("metadata", "annotations"))
    of_pods = mapping(graph.spec.get("annotations"))
    yield from _unknown_backend(of_pods, ("spec", "annotations"))
    yield from _misspelt(of_pods, ("spec", "annotations"))
    yield from _of_updates(of_pods, ("spec", "annotations"), grove=graph.of_grove(facts.grove))


@ANNOTATIONS_WITHOUT_EFFECT.rule("{problem}", added=True)  # the messages of the contract
def what_autoscalers_do_not_have(graph: GraphView, _facts: Facts) -> Violations:
    """Some settings of autoscalers in the annotation have no effect."""
    for location, problem in contract_checks.remarks(Autoscaling, _map_of(graph, AUTOSCALING) or {}):
        yield ("metadata", "annotations", AUTOSCALING, *location), problem


@ANNOTATIONS_OF_COMPONENTS_WITHOUT_EFFECT.rule(_NO_BACKEND, _NO_STRATEGY, _NO_SWITCH, _NO_UPDATE, _MISSPELT, added=True)
@of_each_role
def component_annotations_have_an_effect(component: ComponentView, facts: Facts) -> Violations:
    """Discovery backends, update strategies and switches of a component must have values that the platform knows.

    The update strategy applies only to Deployments.
    """
    for values, at in component.annotations:
        if values:
            yield from _unknown_switch(values, at)
            yield from _unknown_backend(values, at)
            yield from _misspelt(values, at)
            yield from _of_updates(values, at, grove=component.of_grove(facts.grove))


def _unknown_backend(values: dict[str, Any], at: Location) -> Violations:
    backend = annotation(values, DISCOVERY_BACKEND)
    if backend is not None and backend not in _BACKENDS:
        yield (*at, DISCOVERY_BACKEND), _NO_BACKEND.format(value=shown(backend))


def _misspelt(values: dict[str, Any], at: Location) -> Violations:
    """Names that differ little from a known one. Others are of other programs, or of other releases of Dynamo."""
    unknown = (name for name in values if name.startswith("nvidia.com/") and name not in _KNOWN)
    for name in islice(unknown, _COMPARED):
        if suggestion := suggestion_for(name, _KNOWN, similarity=0.9):
            yield (*at, name), _MISSPELT.format(suggestion=suggestion)


def _unknown_switch(
    values: dict[str, Any], at: Location, switches: tuple[tuple[str, str], ...] = _SWITCHES
) -> Violations:
    """Values that differ from the effective value only in case or blanks."""
    for name, switch in switches:
        value = annotation(values, name)
        if value is not None and value != switch and value.strip().lower() == switch:
            yield (*at, name), _NO_SWITCH.format(value=shown(value), switch=switch)


def _of_updates(values: dict[str, Any], at: Location, *, grove: bool | None) -> Violations:
    """Update strategies: without effect if Grove updates the pods, and otherwise only known values have an effect."""
    for name in _OF_UPDATES if grove else ():
        if annotation(values, name) is not None:
            yield (*at, name), _NO_UPDATE
    strategy = annotation(values, DEPLOYMENT_STRATEGY)
    if strategy is not None and strategy not in _STRATEGIES and not grove:
        yield (*at, DEPLOYMENT_STRATEGY), _NO_STRATEGY.format(value=shown(strategy))


def _known_values(values: dict[str, Any], at: Location) -> Violations:
    executor = annotation(values, VLLM_DISTRIBUTED_EXECUTOR_BACKEND)
    if executor is not None and executor.lower() not in ("mp", "ray"):
        yield (*at, VLLM_DISTRIBUTED_EXECUTOR_BACKEND), _NO_EXECUTOR.format(value=shown(executor))
    mode = annotation(values, KUBE_DISCOVERY_MODE)
    if mode is not None and mode not in ("pod", "container"):
        yield (*at, KUBE_DISCOVERY_MODE), _NO_MODE.format(value=shown(mode))


def _margins(values: dict[str, Any], at: Location) -> Violations:
    if values.get(DEPLOYMENT_STRATEGY) == "Recreate":
        return
    for name in (DEPLOYMENT_MAX_SURGE, DEPLOYMENT_MAX_UNAVAILABLE):
        value = annotation(values, name)
        text = (value or "").strip()
        if not text:
            continue  # The default, as in the reference.
        if _MARGIN.fullmatch(text) is None:
            yield (*at, name), _NO_MARGIN.format(value=shown(value))
        elif name == DEPLOYMENT_MAX_UNAVAILABLE and text.endswith("%") and int(text[:-1]) > 100:
            yield (*at, name), _ABOVE_100_PERCENT.format(value=shown(value))
