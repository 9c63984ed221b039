"""The graph that the benchmarks create: a frontend, a prefill and a decode component (vLLM, one GPU each worker)."""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS

from tests.building.objects import object_of

IMAGE = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.0.0"
COMPONENTS = ("Frontend", "PrefillWorker", "DecodeWorker")


def graph(name: str, namespace: str) -> KubeObject:
    """A DynamoGraphDeployment of three components, one replica each."""
    pod = {"spec": {"containers": [{"name": "main", "image": IMAGE}]}}
    frontend = {"name": "Frontend", "type": "frontend", "replicas": 1, "podTemplate": pod}
    components = [frontend, _worker("PrefillWorker", "prefill"), _worker("DecodeWorker", "decode")]
    spec = {"backendFramework": "vllm", "components": components}
    return object_of(DYNAMO_GRAPH_DEPLOYMENTS, name, namespace, spec=spec)


def _worker(name: str, type_: str) -> KubeObject:
    command = ["python3", "-m", "dynamo.vllm"]
    args = ["--model", "Qwen/Qwen3-0.6B", "--disaggregation-mode", type_]
    resources = {"limits": {"nvidia.com/gpu": "1"}}
    container = {"name": "main", "image": IMAGE, "command": command, "args": args, "resources": resources}
    return {"name": name, "type": type_, "replicas": 1, "podTemplate": {"spec": {"containers": [container]}}}
