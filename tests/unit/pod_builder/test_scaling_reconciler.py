"""ScalingReconciler: writes an adapter's number directly into the workload of its component."""

from typing import Any

import pytest
from dynamo_pod_builder.reconcilers.scaling import ScalingReconciler, other_generations
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.labels import COMPONENT
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.kube.errors import Conflict, Forbidden, Invalid, KubeError, NotFound
from dynamo_shared.runtime import Result

from tests.unit.render.building import CONFIG, component, component_children, graph_children, of_kind

from .graph.building import stored, stored_graph
from .graph.test_carry_out import Ledger
from .indexed import indexed

GRAPH = stored_graph(component("One", replicas=1, scalingAdapter={}))
(DCD,) = (stored(each) for each in of_kind(graph_children(GRAPH), "DynamoComponentDeployment"))
(ADAPTER,) = (stored(each) for each in of_kind(graph_children(GRAPH), "DynamoGraphDeploymentScalingAdapter"))
(WORKLOAD,) = (stored(each) for each in of_kind(component_children(DCD), "Deployment"))
NAME = objects.name(DCD)
OLDER = {**DCD, "metadata": {**DCD["metadata"], "name": "older", "uid": "older"}}
ON_GROVE = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "PodCliqueSet",
    "metadata": {**DCD["metadata"], "name": "graph", "uid": "set"},
}


def scaled(replicas: int) -> KubeObject:
    return {**ADAPTER, "spec": {**ADAPTER["spec"], "replicas": replicas}}


async def reconciled(*observed: KubeObject, **refusals: Any) -> list[str]:
    cache, ledger = indexed(*observed), Ledger(**refusals)
    result = await ScalingReconciler(cache, ledger).reconcile(ObjectKey("ns", NAME))  # type: ignore[arg-type]
    assert result == Result()
    return ledger.lines


@pytest.mark.parametrize(
    ("observed", "writes"),
    [
        pytest.param([], [], id="no component"),
        pytest.param([GRAPH, DCD, scaled(3)], [], id="no workload yet"),
        pytest.param([GRAPH, DCD, WORKLOAD], [], id="no adapter"),
        pytest.param([GRAPH, DCD, WORKLOAD, scaled(1)], [], id="right already"),
        pytest.param([GRAPH, DCD, WORKLOAD, scaled(3)], [f"scale Deployment {NAME} to 3"], id="another number"),
        pytest.param([GRAPH, DCD, WORKLOAD, scaled(0)], [f"scale Deployment {NAME} to 0"], id="to nothing"),
        pytest.param([GRAPH, DCD, WORKLOAD, scaled(10**7)], [], id="more than any cluster has pods for"),
        pytest.param([GRAPH, DCD, OLDER, WORKLOAD, scaled(3)], [], id="generations take turns: the rolling update's"),
        pytest.param([GRAPH, DCD, ON_GROVE, WORKLOAD, scaled(3)], [], id="Grove's"),
        pytest.param([DCD, WORKLOAD, scaled(3)], [], id="no graph"),
    ],
)
async def test_the_workload_gets_the_number(observed, writes):
    assert await reconciled(*observed) == writes
    assert CONFIG.grove is False


@pytest.mark.parametrize(
    "error", [NotFound(404, "NotFound", "gone"), Invalid(422, "Invalid", "no"), Forbidden(403, "Forbidden", "quota")]
)
async def test_a_rejection_is_left_to_the_component_reconciler(error: KubeError):
    assert await reconciled(GRAPH, DCD, WORKLOAD, scaled(3), **{NAME: error}) == []


async def test_an_error_that_a_retry_may_fix_is_raised():
    with pytest.raises(Conflict):
        await reconciled(GRAPH, DCD, WORKLOAD, scaled(3), **{NAME: Conflict(409, "Conflict", "changed")})


def test_other_generations_are_those_of_the_same_component():
    """The number of an adapter no longer counts for the former generation, which must be reconciled."""
    labels = {**objects.labels(DCD), COMPONENT: "Two"}
    another = {**DCD, "metadata": {**DCD["metadata"], "name": "two", "uid": "two", "labels": labels}}
    cache = indexed(DCD, OLDER, another)
    assert list(other_generations(cache, DCD)) == [ObjectKey("ns", "older")]
    assert list(other_generations(cache, another)) == []
