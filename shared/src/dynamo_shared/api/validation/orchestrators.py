"""Replicas that span nodes, where the cluster has nothing that runs them."""

from __future__ import annotations

from dynamo_shared.api.rules import Violations
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import GRAPH, RuleSet
from dynamo_shared.api.validation.view import GraphView

ORCHESTRATORS = RuleSet("Multinode", (GRAPH,), "always")

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
