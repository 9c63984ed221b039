"""The graph that the benchmarks create: a frontend, a prefill and a decode component (vLLM, one GPU each worker)."""

from typing import Any

from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS

IMAGE = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.0.0"
COMPONENTS = ("Frontend", "PrefillWorker", "DecodeWorker")


def graph(name: str, namespace: str) -> dict[str, Any]:
    """A DynamoGraphDeployment of three components, one replica each."""
    return {
        **DYNAMO_GRAPH_DEPLOYMENTS.type_meta,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "backendFramework": "vllm",
            "components": [
                {
                    "name": "Frontend",
                    "type": "frontend",
                    "replicas": 1,
                    "podTemplate": {"spec": {"containers": [{"name": "main", "image": IMAGE}]}},
                },
                _worker("PrefillWorker", "prefill"),
                _worker("DecodeWorker", "decode"),
            ],
        },
    }


def _worker(name: str, type_: str) -> dict[str, Any]:
    command = ["python3", "-m", "dynamo.vllm"]
    args = ["--model", "Qwen/Qwen3-0.6B", "--disaggregation-mode", type_]
    resources = {"limits": {"nvidia.com/gpu": "1"}}
    container = {"name": "main", "image": IMAGE, "command": command, "args": args, "resources": resources}
    return {"name": name, "type": type_, "replicas": 1, "podTemplate": {"spec": {"containers": [container]}}}
