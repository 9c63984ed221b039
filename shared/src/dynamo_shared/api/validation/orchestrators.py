"""What runs a graph: replicas that span nodes in a cluster without an orchestrator for them, and what Grove refuses."""

from collections.abc import Iterator

from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.min_available import min_available, place
from dynamo_shared.api.registry.annotations import VOLCANO_QUEUE
from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import annotation, below, text
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import COMPONENT, GRAPH, RuleSet, Violations, broken
from dynamo_shared.api.validation.view import ComponentView, GraphView

ORCHESTRATORS = RuleSet("Multinode", (GRAPH,), "always")
ORCHESTRATORS_ALONE = RuleSet("Multinode", (COMPONENT,), "always")
GROVE = RuleSet("Grove", (GRAPH,), "always")
#: What Grove would refuse, and with it every later change of the graph.
OF_GROVE = RuleSet("Grove", (GRAPH,), "always")
WITHOUT_GROVE = RuleSet("Grove", (GRAPH,), "always")
CHANGES_ON_GROVE = RuleSet("Grove", (GRAPH,), "when updated")


@ORCHESTRATORS.rule(
    "replicas of several nodes cannot run here, so the whole graph fails: install LeaderWorkerSet or Grove, "
    "or leave multinode out",
    added=True,
)
def several_nodes_need_an_orchestrator(graph: GraphView, facts: Facts) -> Violations:
    """Only LeaderWorkerSet and Grove run replicas that span nodes. They may be installed later: it is a warning."""
    if facts.leader_worker_sets is False and graph.of_grove(facts.grove) is False:
        for component in graph.components:
            if component.nodes > 1:
                yield broken(component.field("multinode"))


@ORCHESTRATORS_ALONE.rule(
    "replicas of several nodes cannot run here: install LeaderWorkerSet, or leave multinode out", added=True
)
def several_nodes_of_one_need_leader_worker_set(component: ComponentView, facts: Facts) -> Violations:
    """Only LeaderWorkerSet runs replicas of a component deployment that span nodes."""
    if facts.leader_worker_sets is False and component.nodes > 1:
        yield broken(component.field("multinode"))


@GROVE.rule(
    "Grove refuses a graph whose pods have several schedulers, and not all pods of this one name {name}: "
    "name one for all, or turn Grove off for it",
    added=True,
)
def grove_places_all_pods_by_one_scheduler(graph: GraphView, facts: Facts) -> Violations:
    """Grove places the pods of a graph together, so one scheduler places all of them."""
    if not graph.of_grove(facts.grove):
        return
    # The platform's own choice for pods that name none.
    usual = "volcano" if annotation(graph.annotations, VOLCANO_QUEUE) else "kai-scheduler"
    pods = [each for component in graph.components for each in component.of_each_role]
    names = [text(each.pod.value.get("schedulerName")) or usual for each in pods]
    for component, name in zip(pods, names, strict=True):
        if name not in (usual, "default-scheduler") and len(set(names)) > 1:
            yield broken((*component.pod.at, "schedulerName"), name=shown(name))


@CHANGES_ON_GROVE.rule(
    "Grove keeps the number of nodes of a graph that it runs: create a DynamoGraphDeployment of another name, or "
    "turn Grove off for this one",
    added=True,
)
def grove_keeps_the_number_of_nodes(graph: GraphView, old: GraphView, facts: Facts) -> Violations:
    """How many pods of a replica must be there is fixed in Grove: with another number, nothing of the graph is updated."""
    if not (graph.of_grove(facts.grove) and old.of_grove(facts.grove)):
        return
    nodes = {component.name: component.nodes for component in old.components if component.nodes > 1}
    for component in graph.components:
        # From one node to several is refused.
        if component.nodes > 1 and component.nodes != nodes.get(component.name, component.nodes):
            yield broken(component.field("multinode", "nodeCount"))


@OF_GROVE.rule(
    "{least} are more than the {replicas} of replicas: Grove would wait for the others; write {replicas} or fewer"
)
def replicas_that_start_together_are_there(graph: GraphView, facts: Facts) -> Violations:
    """Grove starts as many replicas together as minAvailable says, so a component has as many, or none."""
    if not graph.of_grove(facts.grove):
        return
    for component in graph.components:
        if component.replicas is None and component.adapted:
            # Its adapter has the number.
            continue
        least, replicas = min_available(component.spec), 1 if component.replicas is None else component.replicas
        if 0 < replicas < least:
            yield broken(component.field(*place(component.spec)), least=least, replicas=replicas)


_STARTS_TOGETHER = "starts replicas together"
#: Fields of a component that Grove alone acts on, and what it does by them.
_FIELDS_OF_GROVE: tuple[tuple[tuple[str, ...], str], ...] = (
    (("minAvailable",), _STARTS_TOGETHER),
    (("experimental", "grove", "forceScalingGroup"), "has scaling groups"),
)


@WITHOUT_GROVE.rule("has no effect: only Grove {does}, and it does not run this graph", added=True)
def fields_of_grove_do_nothing_without_it(graph: GraphView, facts: Facts) -> Violations:
    """What only Grove acts on is stored without it, and has no effect."""
    if graph.of_grove(facts.grove) is False:
        for component in graph.components:
            at = place(component.spec)
            if len(at) > 1:
                yield broken(component.field(*at), does=_STARTS_TOGETHER)
            for field, does in fields_of_grove(component):
                yield broken(field, does=does)


def fields_of_grove(component: ComponentView) -> Iterator[tuple[Location, str]]:
    """Places of a component's fields that Grove alone acts on, and what it does by them."""
    for steps, does in _FIELDS_OF_GROVE:
        if below(component.spec, steps):
            yield component.field(*steps), does
