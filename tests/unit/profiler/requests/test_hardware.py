"""Which GPUs a request is planned for: product names, nodes, what is left out, what cannot be known."""

import asyncio
from typing import Any

import pytest
from dynamo_profiler.requests.dcgm import DcgmExporters, exporters, parse
from dynamo_profiler.requests.hardware import (
    GpuNode,
    HardwareUnknown,
    complete,
    infer_sku,
    kinds,
    limited_to_nodes,
    nodes_with_labels,
    nodes_with_slices,
    planned_product,
    stated,
)
from dynamo_profiler.requests.hardware_discovery import HardwareFinder
from dynamo_shared.api.resources import NODES, RESOURCE_SLICES
from dynamo_shared.api.v1beta1.request import HardwareSpec
from dynamo_shared.kube.client import KubeObjects
from dynamo_shared.kube.errors import Unavailable
from dynamo_shared.runtime.settings.planner import Dcgm
from dynamo_shared.state.cache import ObjectCache


@pytest.mark.parametrize(
    ("product", "kind"),
    [
        ("NVIDIA-H100-80GB-HBM3", "h100_sxm"),
        ("NVIDIA-H100-PCIe", "h100_pcie"),
        ("NVIDIA-H100-NVL", "h100_pcie"),
        ("NVIDIA-H200", "h200_sxm"),
        ("NVIDIA-GB200", "gb200_sxm"),
        ("NVIDIA-GB300", "gb300"),
        ("NVIDIA-GB10", "gb10"),
        ("NVIDIA-B300-SXM6-AC", "b300_sxm"),
        ("NVIDIA-B200", "b200_sxm"),
        ("NVIDIA-RTX-A1000", ""),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "rtx_pro_6000_server"),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition", ""),
        ("NVIDIA-A100-SXM4-80GB", "a100_sxm"),
        ("NVIDIA-A100-PCIE-40GB", "a100_pcie"),
        ("NVIDIA-DGX-A100", "a100_sxm"),
        ("NVIDIA-L40S", "l40s"),
        ("NVIDIA L40", "l40"),
        ("NVIDIA-L4", "l4"),
        ("NVIDIA-A30", "a30"),
        ("Tesla-T4", "t4"),
        ("Tesla-V100-SXM2-32GB", "v100_sxm"),
        ("AMD-Instinct-MI300X", "mi300"),
        ("AMD-Instinct-MI250X", "mi200"),
        ("NVIDIA-A300", ""),
        ("Quadro-RTX-6000", ""),
    ],
)
def test_gpu_skus_are_read_from_product_names(product: str, kind: str) -> None:
    assert infer_sku(product) == kind


def node(name: str, product: str, count: str, memory: str = "81559", **spec: Any) -> dict[str, Any]:
    object_labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": count, "nvidia.com/gpu.memory": memory}
    return {"metadata": {"name": name, "labels": object_labels}, "spec": spec}


MIXED = [
    node("a", "NVIDIA-L40S", "4", "46068"),
    node("b", "NVIDIA-L40S", "4", "46068"),
    node("c", "NVIDIA-H100-80GB-HBM3", "8"),
    node("d", "NVIDIA-H100-80GB-HBM3", "8"),
    node("e", "NVIDIA-H100-80GB-HBM3", "4"),
    node("cordoned", "NVIDIA-H200", "8", unschedulable=True),
    node("broken", "NVIDIA-H200", "eight"),
    node("parts", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "56", "9728"),
    {"metadata": {"name": "cpu"}, "spec": {}},
]


def test_mixed_clusters_are_reported_by_sku_with_the_largest_nodes() -> None:
    result = kinds(nodes_with_labels(MIXED))
    assert [(each.gpu_sku, each.num_gpus_per_node, each.nodes, each.total_gpus) for each in result] == [
        ("h100_sxm", 8, 2, 16),
        ("h100_sxm", 4, 1, 4),
        ("l40s", 4, 2, 8),
    ]
    best = complete(None, result, cap=32, source="nodeLabels")
    assert best.planned == HardwareSpec(gpu_sku="h100_sxm", vram_mb=81559, total_gpus=16, num_gpus_per_node=8)
    assert best.status.source == "nodeLabels"
    named = complete(HardwareSpec(gpu_sku="l40s"), result, cap=32, source="nodeLabels")
    assert named.planned == HardwareSpec(gpu_sku="l40s", vram_mb=46068, total_gpus=8, num_gpus_per_node=4)
    assert named.status.observed is not None
    assert [each.gpu_sku for each in named.status.observed] == ["l40s", "h100_sxm", "h100_sxm"]


def test_nodes_of_a_sku_also_match_its_newer_name() -> None:
    observed = kinds(nodes_with_labels([node("a", "NVIDIA-GB200", "4", "189471"), *MIXED]))
    plan = complete(HardwareSpec(gpu_sku="gb200"), observed, cap=32, source="nodeLabels")
    assert plan.planned == HardwareSpec(gpu_sku="gb200", vram_mb=189471, total_gpus=4, num_gpus_per_node=4)
    status = plan.status.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert planned_product(status) == "NVIDIA-GB200"


def test_only_gpus_that_the_request_does_not_set_are_limited() -> None:
    result = kinds([GpuNode(f"n{i}", "NVIDIA-H200", 8, 143771) for i in range(9)])
    assert complete(None, result, cap=32, source="dcgm").planned.total_gpus == 32
    assert complete(HardwareSpec(total_gpus=64), result, cap=32, source="dcgm").planned.total_gpus == 64


def test_a_complete_hardware_spec_needs_no_discovery() -> None:
    asked = HardwareSpec(gpu_sku="h200_sxm", total_gpus=8, num_gpus_per_node=8)
    made = complete(asked, (), cap=32, source="nodeLabels")
    assert (made.planned.vram_mb, made.status.source, made.status.observed) == (143_771, "spec", None)


@pytest.mark.parametrize(
    ("asked", "nodes", "says"),
    [
        (None, (), "spec.hardware.gpuSku, spec.hardware.numGpusPerNode, spec.hardware.totalGpus not set, and no node"),
        (
            HardwareSpec(gpu_sku="h200_sxm", total_gpus=8),
            (),
            "spec.hardware.numGpusPerNode not set, and no node reports",
        ),
        (
            HardwareSpec(gpu_sku="h200_sxm"),
            kinds(nodes_with_labels(MIXED[:1])),
            "no node has h200_sxm: the cluster has l40s (1 node of 4)",
        ),
    ],
)
def test_unknown_hardware_is_reported(asked: HardwareSpec | None, nodes: Any, says: str) -> None:
    with pytest.raises(HardwareUnknown) as unknown:
        complete(asked, nodes, cap=32, source="nodeLabels")
    assert says in str(unknown.value)


METRICS = """
# TYPE DCGM_FI_DEV_GPU_TEMP gauge
DCGM_FI_DEV_GPU_TEMP{gpu="0",modelName="NVIDIA H100 80GB HBM3"} 40
DCGM_FI_DEV_GPU_TEMP{gpu="1",modelName="NVIDIA H100 80GB HBM3"} 41
# TYPE DCGM_FI_DEV_FB_FREE gauge
DCGM_FI_DEV_FB_FREE{gpu="0"} 80000
DCGM_FI_DEV_FB_FREE{gpu="1"} 50000
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{gpu="0"} 1000
DCGM_FI_DEV_FB_USED{gpu="1"} 31559
"""


def test_dcgm_exporters_report_gpus_and_their_memory() -> None:
    assert parse(METRICS, "node-1") == GpuNode("node-1", "NVIDIA H100 80GB HBM3", 2, 81559)


@pytest.mark.parametrize("text", ["", "<html>", "DCGM_FI_DEV_GPU_TEMP 4", 'DCGM_FI_DEV_GPU_TEMP{gpu="0"} x'])
def test_an_exporter_without_gpus_is_ignored(text: str) -> None:
    assert parse(text, "node-1") is None


def reported(*nodes: GpuNode, asked: HardwareSpec | None = None, source: str = "nodeLabels") -> dict[str, Any]:
    result = complete(asked, kinds(nodes), cap=32, source=source)
    return result.status.model_dump(mode="json", by_alias=True, exclude_none=True)


def test_engines_run_only_on_the_planned_nodes():
    mixed = (GpuNode("a", "NVIDIA-H200", 8, 143771), GpuNode("b", "NVIDIA-L40S", 4, 46068))
    assert planned_product(reported(*mixed)) == "NVIDIA-H200"
    assert planned_product(reported(*mixed, asked=HardwareSpec(gpu_sku="l40s"))) == "NVIDIA-L40S"


def test_no_node_selector_is_set_without_a_distinguishing_label():
    one = GpuNode("a", "NVIDIA H200", 8, 143771)
    # Exporters report products of nodes without labels.
    assert planned_product(reported(one, source="dcgm")) is None
    assert planned_product(reported(asked=HardwareSpec(gpu_sku="h200_sxm", total_gpus=8, num_gpus_per_node=8))) is None
    assert planned_product({}) is None
    for gpus in (4, 8):
        two = (GpuNode("a", "NVIDIA-H100-80GB-HBM3", 8, 81559), GpuNode("b", "NVIDIA-H100-SXM5", gpus, 81559))
        assert planned_product(reported(*two)) is None


def exporter(node: str, account: str = "nvidia-dcgm-exporter", **status: Any) -> dict[str, Any]:
    metadata = {"name": f"on-{node}", "uid": node, "creationTimestamp": "2026-01-01T00:00:00Z"}
    spec = {"nodeName": node, "serviceAccountName": account}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Running", "podIP": "10.0.0.7", **status}}


def test_only_trusted_exporters_are_read_and_one_for_each_node() -> None:
    pods = [
        exporter("a"),
        exporter("a"),
        exporter("b", "default"),
        exporter("c", phase="Pending"),
        exporter("d", podIP="169.254.169.254"),
        exporter("e", podIP="::ffff:127.0.0.1"),
        exporter("f", podIP="fd00::7"),
    ]
    assert exporters(pods, frozenset({"nvidia-dcgm-exporter"})) == [pods[0], pods[6]]


class Pods:
    """An API server with pods of exporters, each of which is listed once."""

    def __init__(self, *pods: dict[str, Any]) -> None:
        self._pods = list(pods)

    async def list(self, *_: object, **__: object) -> KubeObjects:
        pods, self._pods = self._pods, []
        return pods


@pytest.mark.parametrize(("nodes", "reported"), [(("a", "b"), "2 DCGM exporters did not report GPUs"), ((), None)])
async def test_exporters_that_do_not_answer_are_reported(
    nodes: tuple[str, ...], reported: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DCGM_METRICS_ENDPOINT_TEMPLATE", "http://127.0.0.1:1/metrics")
    kube = Pods(*map(exporter, nodes))
    asked = DcgmExporters(kube, lambda: 0.0, Dcgm())  # type: ignore[arg-type]
    finder = HardwareFinder(ObjectCache(), asked, cap=32, enabled=True)
    with pytest.raises(HardwareUnknown) as unknown:
        await finder.find(None)
    assert ("did not report GPUs" in str(unknown.value)) is bool(reported)
    assert (reported or "no node reports") in str(unknown.value)


class NoPods:
    """Cannot list pods, and counts how often that was tried."""

    tries = 0

    async def list(self, *_: object, **__: object) -> KubeObjects:
        self.tries += 1
        await asyncio.sleep(0)
        raise Unavailable(503, "", "not now")


async def test_concurrent_requests_share_a_failed_list_of_exporters() -> None:
    kube = NoPods()
    asked = DcgmExporters(kube, lambda: 0.0, Dcgm())  # type: ignore[arg-type]
    results = await asyncio.gather(*(asked.nodes() for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in results] == [Unavailable] * 3
    assert kube.tries == 1


@pytest.mark.parametrize(
    "text",
    [
        "".join(f'DCGM_FI_DEV_GPU_TEMP{{gpu="{n}",modelName="H100"}} 1\n' for n in range(60_000))
        + 'DCGM_FI_DEV_FB_FREE{gpu="0"} 80000\n',
        'DCGM_FI_DEV_GPU_TEMP{gpu="0",modelName="H100"} 1\nDCGM_FI_DEV_FB_FREE{gpu="0"} +Inf\n',
        'DCGM_FI_DEV_GPU_TEMP{gpu="0",modelName="H100"} 1\nDCGM_FI_DEV_FB_FREE{gpu="0"} NaN\n',
        'DCGM_FI_DEV_GPU_TEMP{gpu="0",modelName="H100"} 1\nDCGM_FI_DEV_FB_FREE{gpu="0"} -5\n',
        'DCGM_FI_DEV_GPU_TEMP{gpu="0",modelName="H100"} 1\nDCGM_FI_DEV_FB_FREE{gpu="0"} 1e300\n',
        'DCGM_FI_DEV_GPU_TEMP{gpu="0",modelName="' + "x" * 1_000_000 + '"} 1\nDCGM_FI_DEV_FB_FREE{gpu="0"} 80000\n',
    ],
)
def test_implausible_answers_of_exporters_are_rejected(text: str) -> None:
    assert parse(text, "node-1") is None


def test_other_metrics_are_not_parsed() -> None:
    assert parse("another_metric{ 1\n" * 100_000 + METRICS, "node-1") == parse(METRICS, "node-1")


def test_the_number_of_gpus_of_a_node_is_limited_by_its_status() -> None:
    reported = [GpuNode(name, "H100", 16, 80_000) for name in ("a", "b", "c", "d", "parts")]
    nodes = [
        {"metadata": {"name": "a"}, "status": {"capacity": {"nvidia.com/gpu": "8"}}},
        {"metadata": {"name": "b"}, "status": {"capacity": {"cpu": "8"}}},
        {"metadata": {"name": "c"}, "spec": {"unschedulable": True}},
        node("parts", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "56"),
    ]
    assert [(each.name, each.gpus) for each in limited_to_nodes(reported, nodes)] == [("a", 8), ("b", 16)]


def test_a_request_without_discovery_must_name_its_hardware() -> None:
    result = stated(HardwareSpec(gpu_sku="h200_sxm", num_gpus_per_node=8))
    assert (result.planned.total_gpus, result.planned.vram_mb, result.status.source) == (8, 143_771, "spec")
    assert stated(HardwareSpec(gpu_sku="l4", num_gpus_per_node=2, total_gpus=16)).planned.total_gpus == 16
    for incomplete in (None, HardwareSpec(gpu_sku="h200_sxm"), HardwareSpec(num_gpus_per_node=8)):
        with pytest.raises(HardwareUnknown, match="enableGpuDiscovery is false, so the request must name its hardware"):
            stated(incomplete)


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


def bare_node(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": "1"}, "spec": spec}


def test_whole_gpus_of_schedulable_nodes_are_counted() -> None:
    slices = [
        resource_slice("a", device(), device(), device(type_="mig")),
        resource_slice("a", device("NIC"), driver="rdma.nvidia.com"),
        resource_slice("cordoned", device()),
        resource_slice("gone", device()),
        resource_slice("odd", device(memory="much"), {"name": "x"}),
    ]
    nodes = [bare_node("a"), bare_node("cordoned", unschedulable=True), bare_node("odd")]
    assert nodes_with_slices(slices, nodes) == [GpuNode("a", H100, 2, 81559)]


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    old = resource_slice("a", device(), device(), name="old", generation=1)
    new = [resource_slice("a", device(), name=name, generation=2) for name in ("one", "two", "three")]
    assert nodes_with_slices([old, *new], [bare_node("a")]) == [GpuNode("a", H100, 3, 81559)]


class _NoExporters:
    async def nodes(self) -> list[GpuNode]:
        raise AssertionError("exporters are asked only where nothing else says it")


async def test_a_request_is_planned_for_the_gpus_in_slices() -> None:
    cache = ObjectCache()
    cache.put(NODES, bare_node("a"))
    published = resource_slice("a", *[device()] * 8)
    published["metadata"] |= {"uid": "s", "resourceVersion": "1"}
    cache.put(RESOURCE_SLICES, published)
    finder = HardwareFinder(cache, _NoExporters(), cap=32, enabled=True)  # type: ignore[arg-type]
    plan = await finder.find(None)
    assert plan.planned == HardwareSpec(gpu_sku="h100_sxm", vram_mb=81559, total_gpus=8, num_gpus_per_node=8)
    assert plan.status.source == "resourceSlices"
