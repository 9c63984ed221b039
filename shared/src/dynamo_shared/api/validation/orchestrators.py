"""Replicas that span nodes, where the cluster has nothing that runs them."""

from __future__ import annotations

from dynamo_shared.api.rules import Violations
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import COMPONENT, GRAPH, RuleSet
from dynamo_shared.api.validation.view import ComponentView, GraphView

ORCHESTRATORS = RuleSet("Multinode", (GRAPH,), "always")
ORCHESTRATORS_ALONE = RuleSet("Multinode", (COMPONENT,), "always")

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
