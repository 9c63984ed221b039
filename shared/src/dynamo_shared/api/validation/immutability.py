"""Changes that an update cannot make: the pods could not follow, so the user must create another graph."""

from collections.abc import Iterator
from typing import Any

from dynamo_shared.api.component_names import component_deployment
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.min_available import min_available, min_available_path
from dynamo_shared.api.registry.annotations import WORKLOAD_PROVIDER
from dynamo_shared.api.untrusted.reading import annotation, mapping, text
from dynamo_shared.api.v1beta1.enums import UNFINISHED_UPDATE
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import BETA, COMPONENT, GRAPH, UPDATED, RuleSet, Violations, broken, listed
from dynamo_shared.api.validation.topology import AT as TOPOLOGY_AT
from dynamo_shared.api.validation.view import ComponentView, GraphView

CHANGES_OF_BACKENDS = RuleSet("Changes of graphs", (GRAPH, COMPONENT), UPDATED)
ADVICE_ON_BACKENDS = RuleSet("Changes of graphs", (GRAPH, COMPONENT), UPDATED)
CHANGES = RuleSet("Changes of graphs", (GRAPH,), UPDATED)

_View = GraphView | ComponentView


@CHANGES_OF_BACKENDS.rule("cannot be changed from {before} to {now}: create a {kind} of another name")
def backend_stays(view: _View, old: _View, _facts: Facts) -> Violations:
    """The inference engine of a graph or a component deployment cannot be changed, set or unset."""
    now, before = view.spec.get("backendFramework") or None, old.spec.get("backendFramework") or None
    if now != before and (now is None or isinstance(now, str)):
        words = [shown(each) if each else "unset" for each in (before, now)]
        kind = GRAPH if isinstance(view, GraphView) else COMPONENT
        yield broken(("spec", "backendFramework"), before=words[0], now=words[1], kind=kind)


@ADVICE_ON_BACKENDS.rule(
    "the engine cannot change once pods run: deploy the other engine next to this one, and move the traffic"
)
def how_to_change_the_backend(view: _View, old: _View, facts: Facts) -> Violations:
    """Appears together with the refusal to change the engine."""
    for at, _ in backend_stays(view, old, facts):
        yield broken(at)


@CHANGES.rule("{components} cannot be added or removed ({difference}): create a DynamoGraphDeployment of another name")
def set_of_components_stays(graph: GraphView, old: GraphView, _facts: Facts) -> Violations:
    """The names of a graph's components cannot change; everything else in the components can."""
    if graph.names is None or old.names is None:
        return
    now, before = frozenset(graph.names), frozenset(old.names)
    if now == before:
        return
    added = [name for name in graph.names if name not in before]
    removed = [name for name in old.names if name not in now]
    difference = "; ".join(
        f"{word} {listed(names)}" for word, names in (("added:", added), ("removed:", removed)) if names
    )
    yield broken(graph.at, components=graph.words.components, difference=difference)


@CHANGES.rule(
    "a {component} cannot change between one node and several: create a DynamoGraphDeployment of another name"
)
def node_topology_stays(graph: GraphView, old: GraphView, _facts: Facts) -> Violations:
    """A component cannot change between one node and several; the number of several nodes can change."""
    for component, before in _pairs(graph, old):
        if (component.nodes > 1) != (before.nodes > 1):
            yield broken(component.field("multinode"), component=graph.words.component)


_MODE_TOGGLED = (
    "{mode} cannot be switched on or off later, because pods would need different GPUs: recreate the "
    "DynamoGraphDeployment"
)
_OTHER_SHADOWS = (
    "cannot be changed from {before} to {now} for failover between pods: recreate the DynamoGraphDeployment"
)


@CHANGES.rule(_MODE_TOGGLED, _OTHER_SHADOWS)
def sharing_between_pods_stays(graph: GraphView, old: GraphView, _facts: Facts) -> Violations:
    """Shared GPU memory and failover between pods cannot be switched on or off, and their number of engines cannot change."""
    mode = shown(graph.words.inter_pod)
    for component, before in _pairs(graph, old):
        memory = component.gms is not None and component.gms.inter_pod
        if memory != (before.gms is not None and before.gms.inter_pod):
            yield component.field(*component.words.gms, "mode"), _MODE_TOGGLED.format(mode=mode)
        now, then = component.failover, before.failover
        between = now is not None and now.inter_pod
        if between != (then is not None and then.inter_pod):
            yield component.field(*component.words.failover, "mode"), _MODE_TOGGLED.format(mode=mode)
        elif between and now is not None and then is not None and now.shadows != then.shadows:
            yield (*now.at, "numShadows"), _OTHER_SHADOWS.format(before=then.shadows, now=now.shadows)


@CHANGES.rule(
    "cannot be changed from {before} to {now}, because Grove cannot change it: create a DynamoGraphDeployment of another name"
)
def replicas_that_start_together_stay(graph: GraphView, old: GraphView, facts: Facts) -> Violations:
    """The number of replicas that start together cannot change while Grove runs the graph; if it is absent, it is 1."""
    if not (graph.of_grove(facts.grove) and old.of_grove(facts.grove)):
        return
    for component, before in _pairs(graph, old):
        then, now = min_available(before.spec), min_available(component.spec)
        if now != then:
            yield broken(component.field(*min_available_path(component.spec)), before=then, now=now)


@CHANGES.rule(
    "cannot be switched on or off later, because Grove would run different objects: recreate the DynamoGraphDeployment",
    versions=(BETA,),
)
def scaling_groups_stay(graph: GraphView, old: GraphView, _facts: Facts) -> Violations:
    """A component on one node stays a scaling group or a clique of Grove."""
    for component, before in _pairs(graph, old):
        if component.is_forced_group != before.is_forced_group:
            yield broken(component.field("experimental", "grove", "forceScalingGroup"))


@CHANGES.rule("cannot be added, removed or changed later: recreate the DynamoGraphDeployment")
def topology_constraints_stay(graph: GraphView, old: GraphView, _facts: Facts) -> Violations:
    """Topology constraints of a graph and of its components cannot be changed."""
    if _constraint(graph.spec, graph) != _constraint(old.spec, old):
        yield broken(TOPOLOGY_AT)
    for component, before in _pairs(graph, old):
        if _constraint(component.spec, graph) != _constraint(before.spec, old):
            yield broken(component.field("topologyConstraint"))


def _constraint(spec: dict[str, Any], graph: GraphView) -> tuple[str, str] | None:
    constraint = spec.get("topologyConstraint")
    if constraint is None:
        return None
    known = mapping(constraint)
    return text(known.get(graph.words.topology_name)), text(known.get("packDomain"))


_ADAPTED = (
    "cannot be changed from {before} to {now}, because {adapter} lets an adapter set it: run kubectl scale dgdsa "
    "{name} --replicas={now}, or leave replicas out"
)
_NOT_YET_ADAPTED = (
    "cannot be changed from {before} to {now} by the update that adds {adapter}: write {before} here, and then run "
    "kubectl scale dgdsa {name} --replicas={now}"
)


@CHANGES.rule(_ADAPTED, _NOT_YET_ADAPTED)
def replicas_of_an_adapter_are_its_own(graph: GraphView, old: GraphView, facts: Facts) -> Violations:
    """If an adapter owns the replicas, a graph sets its number or none; only the platform and planners may set others."""
    if facts.may_set_adapted_replicas:
        return
    owned = facts.adapter_replicas or {}
    for component, before in _pairs(graph, old):
        if component.replicas is None and before.adapted:
            continue
        now = 1 if component.replicas is None else component.replicas
        then = 1 if before.replicas is None else before.replicas
        if component.adapted and now not in (then, owned.get(component.name)):
            name = component_deployment(graph.name, component.name)
            adapter = component.words.adapter
            # A new adapter starts with the number in the graph: there is no adapter yet that a user could scale.
            message = _ADAPTED if before.adapted else _NOT_YET_ADAPTED
            yield component.field("replicas"), message.format(before=then, now=now, adapter=adapter, name=name)


@CHANGES.rule("cannot be changed from {before} to {now}: create a DynamoGraphDeployment of another name")
def what_runs_a_graph_stays(graph: GraphView, old: GraphView, _facts: Facts) -> Violations:
    """The workload provider of a graph cannot be changed or removed after it is set."""
    before, now = old.provider, annotation(graph.annotations, WORKLOAD_PROVIDER)
    if before and now != before:
        words = [shown(each) if each else "unset" for each in (before, now)]
        yield broken(("metadata", "annotations", WORKLOAD_PROVIDER), before=words[0], now=words[1])


@CHANGES.rule("cannot be changed while a rolling update is {phase}: wait until it is complete")
def no_restart_during_a_rolling_update(graph: GraphView, old: GraphView, _facts: Facts) -> Violations:
    """The restart id cannot change while a rolling update is pending or in progress, which replaces the pods anyway."""
    phase = mapping(old.status.get("rollingUpdate")).get("phase")
    if phase not in UNFINISHED_UPDATE:
        return
    now, before = (text(mapping(each.spec.get("restart")).get("id")) for each in (graph, old))
    if now != before:
        yield broken(("spec", "restart", "id"), phase=phase)


def _pairs(graph: GraphView, old: GraphView) -> Iterator[tuple[ComponentView, ComponentView]]:
    """Components that existed before the update, each with its previous state."""
    before = {component.name: component for component in old.components if component.name}
    for component in graph.components:
        if component.name in before:
            yield component, before[component.name]
