"""GPUs that drivers of dynamic resource allocation publish as ResourceSlices, for nodes that no label describes. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from dynamo_shared.api import quantity
from dynamo_shared.api.device_claims import is_gpu_class
from dynamo_shared.api.objects import KubeObject

from dynamo_profiler.requests.hardware import GpuNode

_PRODUCTS = ("productName", "model")
"""Attributes that name the product: of NVIDIA's and AMD's drivers, and of Intel's."""
_MIB = 1024 * 1024


def nodes_with_slices(slices: Iterable[KubeObject], nodes: Iterable[KubeObject]) -> list[GpuNode]:
    """Whole GPUs by node; slices of a GPU are not counted again. Nodes on which nothing is scheduled do not count.

    Of a pool, only the newest generation that its driver published counts. A node's GPUs are alike: where they are not, the
    kind that there is most of counts.
    """
    schedulable = {node["metadata"]["name"] for node in nodes if not (node.get("spec") or {}).get("unschedulable")}
    observed: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for each in _newest(slices):
        spec = each["spec"]
        if spec.get("nodeName") not in schedulable or not is_gpu_class(str(spec.get("driver") or "")):
            continue
        for device in spec.get("devices") or ():
            product, vram = _gpu(device)
            if product and vram:
                observed[spec["nodeName"]][product].append(vram)
    rows = []
    for name, products in sorted(observed.items()):
        product, memory = max(products.items(), key=lambda item: (len(item[1]), item[0]))
        rows.append(GpuNode(name, product, len(memory), min(memory)))
    return rows


def _newest(slices: Iterable[KubeObject]) -> list[KubeObject]:
    pools: dict[tuple[Any, Any], list[KubeObject]] = defaultdict(list)
    for each in slices:
        spec = each.get("spec") or {}
        pools[spec.get("driver"), (spec.get("pool") or {}).get("name")].append(each)
    newest = []
    for members in pools.values():
        last = max(_generation(each) for each in members)
        newest += [each for each in members if _generation(each) == last]
    return newest


def _generation(each: KubeObject) -> int:
    return int((each["spec"].get("pool") or {}).get("generation") or 0)


def _gpu(device: Mapping[str, Any]) -> tuple[str, int]:
    """Product and MiB of a whole GPU; empty and 0 for anything else."""
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if "mig" in str((attributes.get("type") or {}).get("string") or "").lower():
        return "", 0
    product = next((text for name in _PRODUCTS if (text := (attributes.get(name) or {}).get("string"))), "")
    try:
        memory = int(quantity.parse((capacity.get("memory") or {}).get("value") or "0"))
    except quantity.InvalidQuantity:
        return "", 0
    return str(product), max(0, memory // _MIB)
