"""A request whose profiling has two points as its result."""

from typing import Any

from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_REQUESTS
from dynamo_shared.kube import KubeClient


def graph(name: str, *workers: str) -> dict[str, Any]:
    components = [{"name": each, "type": "worker", "replicas": 1} for each in workers]
    metadata = {"name": name}
    spec = {"backendFramework": "vllm", "components": components}
    return {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "metadata": metadata, "spec": spec}


def point(obj: dict[str, Any], user: float, gpu: float) -> dict[str, Any]:
    figures = {"backend": "vllm", "serving": "agg", "gpus": 8, "meetsSLA": True}
    return {"config": obj, "figures": {**figures, "tokensPerSecondPerUser": user, "tokensPerSecondPerGPU": gpu}}


async def ready_request(kube: KubeClient, namespace: str) -> str:
    """A request that is ready, with two points; its name."""
    head = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeploymentRequest"}
    spec = {"model": "Qwen/Qwen3-32B", "autoApply": False}
    await kube.create(
        DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, {**head, "metadata": {"name": "qwen", "namespace": namespace}, "spec": spec}
    )
    first, second = graph("qwen-dgd", "one"), graph("qwen-dgd", "one", "two")
    results = {"pareto": [point(first, 60, 700), point(second, 30, 900)], "selectedConfig": first}
    status = {"phase": "Ready", "profilingResults": {**results, "source": "aiconfigurator"}}
    await kube.apply_status(
        DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
        {**head, "metadata": {"name": "qwen", "namespace": namespace}, "status": status},
    )
    return "qwen"
