"""GPUs from ResourceSlices of drivers for dynamic resource allocation, for nodes without labels. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from dynamo_shared.api import quantity
from dynamo_shared.api.device_slices import whole_gpus
from dynamo_shared.api.objects import KubeObject

from dynamo_profiler.requests.hardware import GpuNode

_MIB = 1024 * 1024


def nodes_with_slices(slices: Iterable[KubeObject], nodes: Iterable[KubeObject]) -> list[GpuNode]:
    """Whole GPUs by node. Ignores nodes on which nothing is scheduled, and GPUs without product or memory.

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
