"""GPUs of nodes that drivers publish as ResourceSlices."""

from typing import Any

from dynamo_profiler.requests.hardware import GpuNode
from dynamo_profiler.requests.hardware_discovery import HardwareFinder
from dynamo_profiler.requests.slices import nodes_with_slices
from dynamo_shared.api.resources import NODES, RESOURCE_SLICES
from dynamo_shared.api.v1beta1.request import HardwareSpec
from dynamo_shared.state.cache import ObjectCache

H100 = "NVIDIA H100 80GB HBM3"


def device(product: str = H100, memory: str = "81559Mi", type_: str = "gpu") -> dict[str, Any]:
    attributes = {"type": {"string": type_}, "productName": {"string": product}}
    return {"name": "gpu-0", "attributes": attributes, "capacity": {"memory": {"value": memory}}}


def resource_slice(
    node: str, *devices: dict[str, Any], name: str = "", generation: int = 1, driver: str = "gpu.nvidia.com"
) -> dict[str, Any]:
    return {
        "metadata": {"name": name or f"{node}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": 1},
            "devices": list(devices),
        },
    }


def node(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": "1"}, "spec": spec}


def test_whole_gpus_of_schedulable_nodes_are_counted() -> None:
    slices = [
        resource_slice("a", device(), device(), device(type_="mig")),
        resource_slice("a", device("NIC"), driver="rdma.nvidia.com"),
        resource_slice("cordoned", device()),
        resource_slice("gone", device()),
        resource_slice("odd", device(memory="much"), {"name": "x"}),
    ]
    nodes = [node("a"), node("cordoned", unschedulable=True), node("odd")]
    assert nodes_with_slices(slices, nodes) == [GpuNode("a", H100, 2, 81559)]


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    old = resource_slice("a", device(), device(), name="old", generation=1)
    new = [resource_slice("a", device(), name=name, generation=2) for name in ("one", "two", "three")]
    assert nodes_with_slices([old, *new], [node("a")]) == [GpuNode("a", H100, 3, 81559)]


class _NoExporters:
    async def nodes(self) -> list[GpuNode]:
        raise AssertionError("exporters are asked only where nothing else says it")


async def test_a_request_is_planned_for_the_gpus_in_slices() -> None:
    cache = ObjectCache()
    cache.put(NODES, node("a"))
    published = resource_slice("a", *[device()] * 8)
    published["metadata"] |= {"uid": "s", "resourceVersion": "1"}
    cache.put(RESOURCE_SLICES, published)
    finder = HardwareFinder(cache, _NoExporters(), cap=32, enabled=True)  # type: ignore[arg-type]
    plan = await finder.find(None)
    assert plan.planned == HardwareSpec(gpu_sku="h100_sxm", vram_mb=81559, total_gpus=8, num_gpus_per_node=8)
    assert plan.status.source == "resourceSlices"
