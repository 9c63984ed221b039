"""Limits for the replicas of a component or an adapter, and for the nodes of a replica."""

from typing import Any

from dynamo_shared.api.replica_limits import INT32_MAX, MAX_NODES, TOO_MANY, too_many
from dynamo_shared.api.untrusted.reading import integer
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import ADAPTER, COMPONENT, GRAPH, RuleSet, Violations, broken
from dynamo_shared.api.validation.view import ComponentView

REPLICAS = RuleSet("Replicas", (GRAPH, COMPONENT))
REPLICAS_OF_ADAPTERS = RuleSet("Replicas", (ADAPTER,))


@REPLICAS.rule(TOO_MANY, added=True)
def replicas_fit_a_cluster(component: ComponentView, _facts: Facts) -> Violations:
    """A component has no more replicas than Kubernetes supports pods in a cluster."""
    if problem := _problem(component.replicas):
        yield component.field("replicas"), problem


@REPLICAS.rule(
    f"{{nodes}} nodes of one replica are more than the limit of {MAX_NODES}: write a smaller number",
    added=True,
    of="multinode",
)
def nodes_can_be_connected(component: ComponentView, _facts: Facts) -> Violations:
    """Each node of a replica gets the addresses of all its nodes, so their number is limited."""
    if MAX_NODES < component.nodes <= INT32_MAX:
        yield broken(component.field("multinode", "nodeCount"), nodes=component.nodes)


@REPLICAS_OF_ADAPTERS.rule(TOO_MANY, added=True)
def adapted_replicas_fit_a_cluster(spec: dict[str, Any], _facts: Facts) -> Violations:
    """An adapter sets no more replicas than Kubernetes supports pods in a cluster."""
    if problem := _problem(integer(spec.get("replicas"))):
        yield ("spec", "replicas"), problem


def _problem(replicas: int | None) -> str:
    return too_many(replicas) if replicas is not None and replicas <= INT32_MAX else ""
