"""Workers with a policy for KV transfers get the label of their node, on a real API server with a scheduler."""

from typing import Any

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import TOPOLOGY_LABEL_KEY
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, NODES, PODS, ObjectKey, key_of
from dynamo_shared.kube import KubeClient

from .platform import eventually, graph, until_state

LABEL = "tests.example.com/zone"


def policy(label: str) -> dict[str, Any]:
    return {"experimental": {"kvTransferPolicy": {"labelKey": label, "domain": "zone"}}}


async def test_pods_of_workers_get_the_label_of_their_node(
    running_platform: Any, kube: KubeClient, namespace: str
) -> None:
    for node in await kube.list(NODES):
        key = key_of(node)
        await kube.merge_patch(NODES, key, {"metadata": {"labels": {LABEL: f"of-{key.name}"}}})
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, **policy(LABEL)))

    async def labelled() -> list[KubeObject] | None:
        pods = await kube.list(PODS, namespace)
        of_workers = [each for each in pods if TOPOLOGY_LABEL_KEY in each["metadata"].get("annotations", {})]
        return pods if len(of_workers) == 2 and all(LABEL in objects.labels(each) for each in of_workers) else None

    for pod in await eventually(labelled, "pods of workers have the label"):
        is_frontend = objects.labels(pod)[labels.COMPONENT] == "Frontend"
        assert objects.labels(pod).get(LABEL) == (None if is_frontend else f"of-{pod['spec']['nodeName']}")
    await until_state(kube, ObjectKey(namespace, "disagg"), "successful")
