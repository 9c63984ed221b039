"""What runs a graph: replicas that span nodes in a cluster without an orchestrator for them, and what Grove refuses."""

from __future__ import annotations

from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.registry.annotations import VOLCANO_QUEUE
from dynamo_shared.api.rules import Violations
from dynamo_shared.api.untrusted.reading import annotation, text
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import COMPONENT, GRAPH, RuleSet
from dynamo_shared.api.validation.view import ComponentView, GraphView

ORCHESTRATORS = RuleSet("Multinode", (GRAPH,), "always")
ORCHESTRATORS_ALONE = RuleSet("Multinode", (COMPONENT,), "always")
GROVE = RuleSet("Grove", (GRAPH,), "always")
CHANGES_ON_GROVE = RuleSet("Grove", (GRAPH,), "when updated")

_NONE = (
    "replicas of several nodes cannot run here, so the whole graph fails: install LeaderWorkerSet or Grove, "
    "or leave multinode out"
)


@ORCHESTRATORS.rule(_NONE, added=True)
def several_nodes_need_an_orchestrator(graph: GraphView, facts: Facts) -> Violations:
    """Only LeaderWorkerSet and Grove run replicas that span nodes. They may be installed later: it is a warning."""
    if facts.leader_worker_sets is False and graph.of_grove(facts.grove) is False:
        for component in graph.components:
            if component.nodes > 1:
                yield component.field("multinode"), _NONE


_NONE_ALONE = "replicas of several nodes cannot run here: install LeaderWorkerSet, or leave multinode out"


@ORCHESTRATORS_ALONE.rule(_NONE_ALONE, added=True)
def several_nodes_of_one_need_leader_worker_set(component: ComponentView, facts: Facts) -> Violations:
    """Only LeaderWorkerSet runs replicas of a component deployment that span nodes."""
    if facts.leader_worker_sets is False and component.nodes > 1:
        yield component.field("multinode"), _NONE_ALONE


_SCHEDULERS = (
    "Grove refuses a graph whose pods have several schedulers, and not all pods of this one name {name}: "
    "name one for all, or turn Grove off for it"
)


@GROVE.rule(_SCHEDULERS, added=True)
def grove_places_all_pods_by_one_scheduler(graph: GraphView, facts: Facts) -> Violations:
    """Grove places the pods of a graph together, so one scheduler places all of them."""
    if not graph.of_grove(facts.grove):
        return
    # The platform's own choice for pods that name none.
    usual = "volcano" if annotation(graph.annotations, VOLCANO_QUEUE) else "kai-scheduler"
    names = [text(component.pod.value.get("schedulerName")) or usual for component in graph.components]
    for component, name in zip(graph.components, names, strict=True):
        if name not in (usual, "default-scheduler") and len(set(names)) > 1:
            yield (*component.pod.at, "schedulerName"), _SCHEDULERS.format(name=shown(name))


_OTHER_NODES = (
    "Grove keeps the number of nodes of a graph that it runs: create a DynamoGraphDeployment of another name, or "
    "turn Grove off for this one"
)


@CHANGES_ON_GROVE.rule(_OTHER_NODES, added=True)
def grove_keeps_the_number_of_nodes(graph: GraphView, old: GraphView, facts: Facts) -> Violations:
    """How many pods of a replica must be there is fixed in Grove: with another number, nothing of the graph is updated."""
    if not (graph.of_grove(facts.grove) and old.of_grove(facts.grove)):
        return
    nodes = {component.name: component.nodes for component in old.components if component.nodes > 1}
    for component in graph.components:
        # From one node to several is refused.
        if component.nodes > 1 and component.nodes != nodes.get(component.name, component.nodes):
            yield component.field("multinode", "nodeCount"), _OTHER_NODES
