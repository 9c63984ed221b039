"""dynamoctl dgdr draws and deploys points of a request's front."""

import pytest
from dynamo_ctl.commands.dgdr import points
from dynamo_ctl.errors import CtlError
from dynamo_ctl.targets import ClusterOptions
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_shared.api.registry import annotations as keys
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.kube import KubeClient

from .points import graph, ready_request


@pytest.fixture
async def request_of_two(kube: KubeClient, namespace: str) -> str:
    return await ready_request(kube, namespace)


@pytest.fixture
def cluster(control_plane: ControlPlane) -> ClusterOptions:
    return ClusterOptions(control_plane.kubeconfig, None)


async def workers(kube: KubeClient, namespace: str) -> list[str]:
    observed = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "qwen-dgd"))
    return [each["name"] for each in observed["spec"]["components"]]


async def test_points_are_deployed(kube: KubeClient, cluster: ClusterOptions, namespace: str, request_of_two: str):
    lines: list[str] = []
    await points.apply(cluster, request_of_two, namespace, None, lines.append, dry_run=True)
    assert "kind: DynamoGraphDeployment" in lines[0]
    await points.apply(cluster, request_of_two, namespace, None, lines.append, dry_run=False)
    assert lines[-1] == f"DynamoGraphDeployment qwen-dgd created in namespace {namespace}"
    assert await workers(kube, namespace) == ["one"]
    made = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "qwen-dgd"))
    assert made["metadata"]["labels"][labels.REQUEST_NAME] == "qwen"
    assert made["metadata"]["annotations"][keys.REQUEST_UID]

    await points.apply(cluster, request_of_two, namespace, 2, lines.append, dry_run=False)
    assert lines[-1] == f"DynamoGraphDeployment qwen-dgd changed in namespace {namespace}"
    assert await workers(kube, namespace) == ["one", "two"]
    # Components that the other point lacks are removed.
    await points.apply(cluster, request_of_two, namespace, 1, lines.append, dry_run=False)
    assert await workers(kube, namespace) == ["one"]


async def test_a_graph_of_another_origin_is_not_overwritten(
    kube: KubeClient, cluster: ClusterOptions, namespace: str, request_of_two: str
):
    mine = graph("qwen-dgd", "mine")
    mine["metadata"]["namespace"] = namespace
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, mine)
    with pytest.raises(CtlError, match="was not created for this request"):
        await points.apply(cluster, request_of_two, namespace, None, str, dry_run=False)
    assert await workers(kube, namespace) == ["mine"]


async def test_missing_points_requests_and_results_are_reported(
    kube: KubeClient, cluster: ClusterOptions, namespace: str, request_of_two: str
):
    with pytest.raises(CtlError, match="--point 3: the result has 2 points"):
        await points.apply(cluster, request_of_two, namespace, 3, str, dry_run=False)
    with pytest.raises(CtlError, match="no DynamoGraphDeploymentRequest 'other'"):
        await points.read(cluster, "other", namespace)
    fresh = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeploymentRequest", "spec": {"model": "m"}}
    await kube.create(
        DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, {**fresh, "metadata": {"name": "fresh", "namespace": namespace}}
    )
    with pytest.raises(CtlError, match="has no result yet; its phase is Pending"):
        points.plot(await points.read(cluster, "fresh", namespace), str, file=None, width=78)
