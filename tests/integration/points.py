"""A request whose profiling result has two points."""

from typing import Any

from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.kube import KubeClient

from tests.building.objects import object_of


def graph(name: str, *workers: str) -> dict[str, Any]:
    components = [{"name": each, "type": "worker", "replicas": 1} for each in workers]
    spec = {"backendFramework": "vllm", "components": components}
    return object_of(DYNAMO_GRAPH_DEPLOYMENTS, name, "", spec=spec)


def point(obj: dict[str, Any], user: float, gpu: float) -> dict[str, Any]:
    figures = {"backend": "vllm", "serving": "agg", "gpus": 8, "meetsSLA": True}
    return {"config": obj, "figures": {**figures, "tokensPerSecondPerUser": user, "tokensPerSecondPerGPU": gpu}}


async def ready_request(kube: KubeClient, namespace: str) -> str:
    """A request that is ready, with two points; its name."""
    requests = DYNAMO_GRAPH_DEPLOYMENT_REQUESTS
    spec = {"model": "Qwen/Qwen3-32B", "autoApply": False}
    await kube.create(requests, object_of(requests, "qwen", namespace, spec=spec))
    first, second = graph("qwen-dgd", "one"), graph("qwen-dgd", "one", "two")
    results = {"pareto": [point(first, 60, 700), point(second, 30, 900)], "selectedConfig": first}
    status = {"phase": "Ready", "profilingResults": {**results, "source": "aiconfigurator"}}
    await kube.apply_status(requests, object_of(requests, "qwen", namespace, status=status))
    return "qwen"
