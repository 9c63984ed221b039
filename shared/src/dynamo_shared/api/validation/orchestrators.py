"""Orchestrators: replicas that span nodes need one, and Grove refuses some graphs."""

from collections.abc import Iterator

from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.min_available import min_available, min_available_path
from dynamo_shared.api.registry.annotations import VOLCANO_QUEUE
from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import annotation, below, text
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import COMPONENT, GRAPH, UPDATED, RuleSet, Violations, broken
from dynamo_shared.api.validation.view import ComponentView, GraphView

ORCHESTRATORS = RuleSet("Multinode", (GRAPH,))
ORCHESTRATORS_ALONE = RuleSet("Multinode", (COMPONENT,))
GROVE = RuleSet("Grove", (GRAPH,))
#: Fields that Grove would refuse, and with them every later change of the graph.
OF_GROVE = RuleSet("Grove", (GRAPH,))
WITHOUT_GROVE = RuleSet("Grove", (GRAPH,))
CHANGES_ON_GROVE = RuleSet("Grove", (GRAPH,), UPDATED)


@ORCHESTRATORS.rule(
    "replicas of several nodes cannot run here, so the whole graph fails: install LeaderWorkerSet or Grove, "
    "or leave multinode out",
    added=True,
)
def several_nodes_need_an_orchestrator(graph: GraphView, facts: Facts) -> Violations:
    """Only LeaderWorkerSet and Grove run replicas that span nodes. They may be installed later, so this is a warning."""
    if facts.leader_worker_sets is False and graph.of_grove(facts.grove) is False:
        for component in graph.components:
            if component.nodes > 1:
                yield broken(component.field("multinode"))


@ORCHESTRATORS_ALONE.rule(
    "replicas of several nodes cannot run here: install LeaderWorkerSet, or leave multinode out", added=True
)
def several_nodes_of_one_need_leader_worker_set(component: ComponentView, facts: Facts) -> Violations:
    """For component deployments, only LeaderWorkerSet runs replicas that span nodes."""
    if facts.leader_worker_sets is False and component.nodes > 1:
        yield broken(component.field("multinode"))


@GROVE.rule(
    "Grove rejects graphs whose pods have several schedulers, and not all pods of this graph name {name}: name one "
    "scheduler for all pods, or disable Grove for this graph",
    added=True,
)
def grove_places_all_pods_by_one_scheduler(graph: GraphView, facts: Facts) -> Violations:
    """Grove places the pods of a graph together, so all pods have the same scheduler."""
    if not graph.of_grove(facts.grove):
        return
    # The platform's choice for pods that name no scheduler.
    usual = "volcano" if annotation(graph.annotations, VOLCANO_QUEUE) else "kai-scheduler"
    pods = [each for component in graph.components for each in component.of_each_role]
    names = [text(each.pod.value.get("schedulerName")) or usual for each in pods]
    for component, name in zip(pods, names, strict=True):
        if name not in (usual, "default-scheduler") and len(set(names)) > 1:
            yield broken((*component.pod.at, "schedulerName"), name=shown(name))


@CHANGES_ON_GROVE.rule(
    "Grove cannot change the number of nodes of a graph that it runs: create a DynamoGraphDeployment of another "
    "name, or disable Grove for this graph",
    added=True,
)
def grove_keeps_the_number_of_nodes(graph: GraphView, old: GraphView, facts: Facts) -> Violations:
    """Grove fixes the number of pods in a replica; with another number, Grove would accept no update of the graph."""
    if not (graph.of_grove(facts.grove) and old.of_grove(facts.grove)):
        return
    nodes = {component.name: component.nodes for component in old.components if component.nodes > 1}
    for component in graph.components:
        # Another rule refuses changes from one node to several.
        if component.nodes > 1 and component.nodes != nodes.get(component.name, component.nodes):
            yield broken(component.field("multinode", "nodeCount"))


@OF_GROVE.rule(
    "{least} is more than replicas ({replicas}), and Grove would wait for the missing ones: write at most {replicas}"
)
def replicas_that_start_together_are_there(graph: GraphView, facts: Facts) -> Violations:
    """Grove starts minAvailable replicas together, so a component has at least that many replicas, or none."""
    if not graph.of_grove(facts.grove):
        return
    for component in graph.components:
        if component.replicas is None and component.adapted:
            # Its adapter sets the number.
            continue
        least, replicas = min_available(component.spec), 1 if component.replicas is None else component.replicas
        if 0 < replicas < least:
            yield broken(component.field(*min_available_path(component.spec)), least=least, replicas=replicas)


_STARTS_TOGETHER = "starts replicas together"
#: Fields of a component that only Grove reads, and what Grove does with them.
_FIELDS_OF_GROVE: tuple[tuple[tuple[str, ...], str], ...] = (
    (("minAvailable",), _STARTS_TOGETHER),
    (("experimental", "grove", "forceScalingGroup"), "has scaling groups"),
)


@WITHOUT_GROVE.rule("has no effect: only Grove {does}, and Grove does not run this graph", added=True)
def fields_of_grove_do_nothing_without_it(graph: GraphView, facts: Facts) -> Violations:
    """Fields that only Grove reads are stored, but have no effect without Grove."""
    if graph.of_grove(facts.grove) is False:
        for component in graph.components:
            at = min_available_path(component.spec)
            if len(at) > 1:
                yield broken(component.field(*at), does=_STARTS_TOGETHER)
            for field, does in fields_of_grove(component):
                yield broken(field, does=does)


def fields_of_grove(component: ComponentView) -> Iterator[tuple[Location, str]]:
    """Locations of a component's fields that only Grove reads, and what Grove does with them."""
    for steps, does in _FIELDS_OF_GROVE:
        if below(component.spec, steps):
            yield component.field(*steps), does
