"""Topology domains in Grove's report and in a graph's condition."""

from datetime import UTC, datetime
from typing import Any

import pytest
from dynamo_pod_builder.status.topology import is_constrained, topology_condition

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def reported(status: str, reason: str = "R", message: str = "m") -> dict[str, Any]:
    condition = {"type": "TopologyLevelsUnavailable", "status": status, "reason": reason, "message": message}
    return {"status": {"conditions": [condition]}}


@pytest.mark.parametrize(
    ("observed", "status", "reason"),
    [
        (None, "Unknown", "TopologyConditionPending"),
        ({"status": {}}, "Unknown", "TopologyConditionPending"),
        (reported("True"), "False", "TopologyLevelsUnavailable"),
        (reported("False"), "True", "AllTopologyLevelsAvailable"),
        (reported("Unknown"), "Unknown", "TopologyConditionPending"),
        (reported("Unknown", "ClusterTopologyNotFound"), "False", "TopologyDefinitionNotFound"),
    ],
)
def test_condition(observed, status, reason) -> None:
    result = topology_condition({"metadata": {"generation": 3}}, observed, NOW)
    assert (result["type"], result["status"], result["reason"]) == ("TopologyLevelsAvailable", status, reason)
    assert result["observedGeneration"] == 3


def test_the_message_of_grove_is_repeated() -> None:
    assert topology_condition({"metadata": {}}, reported("True", message="no rack"), NOW)["message"] == "no rack"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"components": [{"name": "A"}]}, False),
        ({"topologyConstraint": {"clusterTopologyName": "t"}}, True),
        ({"components": [{"name": "A", "topologyConstraint": {"packDomain": "rack"}}]}, True),
        ({"providerOverride": {}}, True),
        ({"components": [{"name": "A", "providerOverride": {}}]}, True),
        ({"components": [{"name": "A", "roles": [{"name": "leader"}]}]}, False),
        ({"components": [{"name": "A", "roles": [{"name": "leader", "providerOverride": {}}]}]}, True),
    ],
)
def test_graphs_that_have_the_condition(spec, expected) -> None:
    assert is_constrained({"spec": spec}) == expected
