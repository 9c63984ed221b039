"""The GPUs to plan a request for: its spec, completed from the cluster.

Facts: operator behaviour, sections 7.4 and 7.8. Pure: reports of nodes or exporters are passed in.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from dynamo_shared.api import objects, quantity
from dynamo_shared.api.device_slices import whole_gpus
from dynamo_shared.api.gpus import NVIDIA_GPU
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.v1beta1.request import GpuNodes, HardwareSpec, HardwareStatus
from dynamo_shared.api.wording import many

from dynamo_profiler.profiling.gpus import same_kind, vram_of

SPEC, NODE_LABELS, SLICES, DCGM = "spec", "nodeLabels", "resourceSlices", "dcgm"

#: Tokens of product names as regular expressions, and their kinds, in the order of the search.
_TOKENS = (
    ("GB300", "gb300"),
    ("GB200", "gb200"),
    ("GB10", "gb10"),
    ("B300", "b300"),
    ("B200", "b200"),
    ("H200", "h200"),
    ("H100", "h100"),
    ("A100", "a100"),
    ("A30", "a30"),
    # The workstation's model has less power, and the figures describe servers.
    ("RTX.PRO.6000.BLACKWELL.SERVER", "rtx_pro_6000_server"),
    ("L40S", "l40s"),
    ("L40", "l40"),
    ("L4", "l4"),
    ("V100", "v100"),
    ("T4", "t4"),
    ("MI300", "mi300"),
    ("MI250", "mi200"),
    ("MI200", "mi200"),
)
_MIB = 1024 * 1024
_ONLY_SXM = frozenset({"gb200", "b300", "b200", "h200"})
_BOTH_FORMS = frozenset({"h100", "a100", "v100"})
#: Short names that occur in other names (A300, L4 in L40, T4 in T400): they count only as separate words.
_WORDS = frozenset({"A30", "L4", "T4", "GB10"})


class HardwareUnknown(Exception):
    """Neither the spec nor the cluster has a necessary value. The message says which field to set."""


@dataclass(frozen=True, slots=True)
class GpuNode:
    """GPUs of one node. `vram_mib`: memory of one GPU."""

    name: str
    product: str
    gpus: int
    vram_mib: int

    @property
    def kind(self) -> str:
        """Its kind as in `spec.hardware.gpuSku`; the product's name if there is no such kind."""
        return infer_sku(self.product) or self.product


@dataclass(frozen=True, slots=True)
class HardwarePlan:
    """The hardware to plan a request for, and the hardware that its status reports."""

    planned: HardwareSpec
    status: HardwareStatus


@lru_cache(256)
def infer_sku(product: str) -> str:
    """The kind of GPU for a product name such as `NVIDIA-H100-80GB-HBM3`; empty if the kind is unknown."""
    name = product.upper()
    words = name.replace("-", " ").replace("_", " ").split()
    joined = "".join(words)
    form = "sxm" if any(token in joined for token in ("SXM", "HGX", "DGX")) or _is_sxm_memory(words) else "pcie"
    for token, kind in _TOKENS:
        # An RTX A1000 is not an A100.
        if token in words if token in _WORDS else re.search(rf"{token}(?!\d)", name):
            if kind in _ONLY_SXM:
                return f"{kind}_sxm"
            return f"{kind}_{form}" if kind in _BOTH_FORMS else kind
    return ""


def _is_sxm_memory(words: Sequence[str]) -> bool:
    """H100s on SXM boards are recognized only by their memory: `NVIDIA-H100-80GB-HBM3`; PCIe models have PCIe or NVL."""
    return "HBM3" in words and not {"PCIE", "NVL"} & set(words)


def nodes_with_labels(nodes: Iterable[KubeObject]) -> list[GpuNode]:
    """Whole GPUs from the labels of the GPU operator. Nodes on which nothing is scheduled do not count.

    GPUs that are divided (MIG) do not count: a node has many parts, and no engine spans several of them.
    """
    observed = []
    for node in nodes:
        node_labels, name = node["metadata"].get("labels") or {}, node["metadata"]["name"]
        product = node_labels.get(labels.GPU_PRODUCT, "")
        gpus, vram = _number(node_labels.get(labels.GPU_COUNT)), _number(node_labels.get(labels.GPU_MEMORY))
        if product and gpus > 0 and vram > 0 and _counts(node):
            observed.append(GpuNode(name, product, gpus, vram))
    return observed


def nodes_with_slices(slices: Iterable[KubeObject], nodes: Iterable[KubeObject]) -> list[GpuNode]:
    """Whole GPUs by node from ResourceSlices of drivers for dynamic resource allocation. Ignores nodes on which nothing is
    scheduled, and GPUs without product or memory.

    If a node has several kinds of GPUs, the most frequent kind counts.
    """
    schedulable = {node["metadata"]["name"] for node in nodes if not (node.get("spec") or {}).get("unschedulable")}
    observed: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for gpu in whole_gpus(slices):
        vram = _vram(gpu.fields)
        if gpu.node in schedulable and gpu.product and vram:
            observed[gpu.node][gpu.product].append(vram)
    rows = []
    for name, products in sorted(observed.items()):
        product, memory = max(products.items(), key=lambda item: (len(item[1]), item[0]))
        rows.append(GpuNode(name, product, len(memory), min(memory)))
    return rows


def _vram(device: Mapping[str, Any]) -> int:
    """Memory of a GPU in MiB; 0 if unknown."""
    capacity = device.get("capacity") or {}
    try:
        memory = int(quantity.parse((capacity.get("memory") or {}).get("value") or "0"))
    except quantity.InvalidQuantity:
        return 0
    return max(0, memory // _MIB)


def _counts(node: KubeObject) -> bool:
    """Whether pods are scheduled on a node, and its GPUs are whole."""
    product = objects.labels(node).get(labels.GPU_PRODUCT, "")
    return not node.get("spec", {}).get("unschedulable") and "MIG" not in product.upper().split("-")


def limited_to_nodes(reported: Iterable[GpuNode], nodes: Iterable[KubeObject]) -> list[GpuNode]:
    """The exporters' report for nodes that count, limited to the number of GPUs in the node's own status, if it has
    one.
    """
    known = {node["metadata"]["name"]: node for node in nodes}
    kept = []
    for each in reported:
        node = known.get(each.name)
        if node is None or not _counts(node):
            continue
        capacity = _number(str(((node.get("status") or {}).get("capacity") or {}).get(NVIDIA_GPU, "0")))
        kept.append(replace(each, gpus=min(each.gpus, capacity)) if capacity else each)
    return kept


def kinds(nodes: Iterable[GpuNode]) -> list[GpuNodes]:
    """Groups of equal nodes, best first: most GPUs per node, then most memory (the reference's order), then most nodes.

    Nodes with different numbers of GPUs are not equal: an engine that needs eight GPUs of a node does not fit on four.
    A group of different products has no product.
    """
    groups: dict[tuple[str, int], list[GpuNode]] = defaultdict(list)
    for node in nodes:
        groups[node.kind, node.gpus].append(node)
    observed = [
        GpuNodes(
            product=_only({node.product for node in members}),
            gpu_sku=kind,
            vram_mb=min(node.vram_mib for node in members),
            num_gpus_per_node=gpus,
            nodes=len(members),
            total_gpus=gpus * len(members),
        )
        for (kind, gpus), members in groups.items()
    ]
    return sorted(observed, key=_rank, reverse=True)


def _rank(each: GpuNodes) -> tuple[float, float, float, str]:
    return (each.num_gpus_per_node or 0, each.vram_mb or 0, each.nodes or 0, each.gpu_sku or "")


def is_complete(hardware: HardwareSpec | None) -> bool:
    """Whether the hardware needs no discovery."""
    needed = (hardware and hardware.gpu_sku, hardware and hardware.total_gpus, hardware and hardware.num_gpus_per_node)
    return all(needed)


def complete(hardware: HardwareSpec | None, observed: Sequence[GpuNodes], *, cap: int, source: str) -> HardwarePlan:
    """Complete the spec with observed hardware. `cap` limits the number of GPUs if the request does not set it.

    Raises HardwareUnknown if neither has a value.
    """
    asked = hardware or HardwareSpec()
    matching = [each for each in observed if not asked.gpu_sku or same_kind(asked.gpu_sku, each.gpu_sku)]
    best = matching[0] if matching else None
    sku = asked.gpu_sku or (best and best.gpu_sku) or ""
    per_node = asked.num_gpus_per_node or (best and best.num_gpus_per_node)
    total = asked.total_gpus or (best and best.total_gpus and min(cap, best.total_gpus))
    missing = [
        name for name, value in (("gpuSku", sku), ("numGpusPerNode", per_node), ("totalGpus", total)) if not value
    ]
    if missing:
        raise HardwareUnknown(_unknown(asked, observed, missing))
    vram = vram_of(sku, asked.vram_mb or (best.vram_mb if best else None))
    planned = asked.model_copy(
        update={"gpu_sku": sku, "num_gpus_per_node": per_node, "total_gpus": total, "vram_mb": vram}
    )
    others = [each for each in observed if each not in matching]
    reported_by = source if best is not None else SPEC
    return HardwarePlan(
        planned, HardwareStatus(planned=planned, observed=[*matching, *others] or None, source=reported_by)
    )


def stated(hardware: HardwareSpec | None) -> HardwarePlan:
    """The hardware of a request that disables discovery. Raises HardwareUnknown if a necessary value is missing."""
    asked = hardware or HardwareSpec()
    if not asked.gpu_sku or not asked.num_gpus_per_node:
        raise HardwareUnknown(
            "spec.enableGpuDiscovery is false, so the request must name its hardware: set "
            "spec.profilingConfig.config.hardware.gpuType and numGpusPerNode, or remove enableGpuDiscovery"
        )
    planned = asked.model_copy(
        update={
            "total_gpus": asked.total_gpus or asked.num_gpus_per_node,
            "vram_mb": vram_of(asked.gpu_sku, asked.vram_mb),
        }
    )
    return HardwarePlan(planned, HardwareStatus(planned=planned, source=SPEC))


def planned_product(status: KubeObject) -> str | None:
    """The product label of the nodes to plan for, from `status.hardware`; None if no single label selects them.

    Exporters also report products, but then the nodes have no such label.
    """
    kind = (status.get("planned") or {}).get("gpuSku")
    if status.get("source") != NODE_LABELS:
        return None
    products = {each.get("product") for each in status.get("found") or () if same_kind(each.get("gpuSku"), kind)}
    return _only(products)


def _only(products: set[str | None] | set[str]) -> str | None:
    return next(iter(products)) if len(products) == 1 else None


def _unknown(asked: HardwareSpec, observed: Sequence[GpuNodes], missing: Sequence[str]) -> str:
    names = ", ".join(f"spec.hardware.{name}" for name in missing)
    if not observed:
        return (
            f"{names} not set, and no node reports its GPUs: set {'it' if len(missing) == 1 else 'them'}, or install the "
            f"GPU operator, whose labels ({labels.GPU_PRODUCT}, {labels.GPU_COUNT}, {labels.GPU_MEMORY}) report them"
        )
    gpus = ", ".join(
        f"{each.gpu_sku} ({many(each.nodes or 0, 'node')} of {each.num_gpus_per_node})" for each in observed
    )
    return f"{names} not set, and no node has {asked.gpu_sku}: the cluster has {gpus}; set the missing fields, or another gpuSku"


def _number(text: str | None) -> int:
    try:
        return int(text or 0)
    except ValueError:
        return 0
