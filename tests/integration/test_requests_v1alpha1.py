"""A v1alpha1 request, which the real webhooks convert on writes and reads."""

from typing import Any

from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, NODES, ObjectKey
from dynamo_shared.runtime import Service
from dynamo_watcher.app import WatcherService

from .platform import eventually, platform, settings
from .test_requests import ControlledProfiler, Profiler, no_result

ALPHA = DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.at("v1alpha1")
NODE = {
    **NODES.type_meta,
    "metadata": {
        "name": "h200",
        "labels": {
            "nvidia.com/gpu.product": "NVIDIA-H200",
            "nvidia.com/gpu.count": "8",
            "nvidia.com/gpu.memory": "143771",
        },
    },
}


async def test_a_v1alpha1_request_is_profiled_and_reports_v1alpha1_states(
    admission_plane, admission_kube, admission_namespace, nats_server
):
    namespace, profiler = admission_namespace, ControlledProfiler()
    profiler.go.set()
    parts: list[Service] = [WatcherService(), Profiler(profiler, no_result)]
    await admission_kube.create(NODES, NODE)
    sla = {"isl": 3000, "osl": 150, "ttft": 200, "itl": 20}
    config = {"sla": sla, "sweep": {"useAiConfigurator": True}}
    profiling = {"profilerImage": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.1.1", "config": config}
    spec = {"model": "Qwen/Qwen3-32B", "backend": "vllm", "autoApply": False, "profilingConfig": profiling}
    metadata = {"name": "qwen", "namespace": namespace}
    request: dict[str, Any] = {**ALPHA.type_meta, "metadata": metadata, "spec": spec}
    configured = settings(admission_plane.kubeconfig, nats_server.url, PLATFORM__KUBERNETES__NAMESPACES=namespace)
    async with platform(configured, parts):
        await admission_kube.create(ALPHA, request)

        async def ready() -> dict[str, Any] | None:
            observed = await admission_kube.get(ALPHA, ObjectKey(namespace, "qwen"))
            return observed if observed.get("status", {}).get("state") == "Ready" else None

        stored = await eventually(ready, "the request is ready, in v1alpha1's states")
    (asked,) = profiler.asked
    assert asked.spec.workload is not None
    assert asked.spec.sla is not None
    assert (asked.spec.workload.isl, asked.spec.workload.osl) == (3000, 150)
    assert (asked.spec.sla.ttft, asked.spec.sla.itl) == (200, 20)
    assert stored["status"]["generatedDeployment"]["metadata"]["name"] == "qwen-dgd"
    assert stored["status"]["deployment"] == {"state": "initializing", "name": "qwen-dgd", "namespace": namespace}
    assert stored["spec"].items() >= request["spec"].items()
