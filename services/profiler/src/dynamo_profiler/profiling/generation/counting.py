"""GPUs that a graph takes, by any author."""

from __future__ import annotations

from dynamo_shared.api.gpus import NVIDIA_GPU
from dynamo_shared.api.objects import KubeObject


def gpus_of(graph: KubeObject) -> int:
    """Of all replicas and all their nodes; amounts that are not whole numbers do not count."""
    return sum(_of_replica(each) * _whole(each.get("replicas"), 1) for each in graph["spec"]["components"])


def _of_replica(component: KubeObject) -> int:
    nodes = _whole((component.get("multinode") or {}).get("nodeCount"), 1)
    spec = (component.get("podTemplate") or {}).get("spec") or {}
    return nodes * sum(of_container(each) for each in spec.get("containers") or ())


def of_container(container: KubeObject) -> int:
    """What it asks for; limits count before requests."""
    resources = container.get("resources") or {}
    amounts = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    return _whole(amounts.get(NVIDIA_GPU), 0)


def _whole(value: object, otherwise: int) -> int:
    text = str(value)
    return int(text) if text.isdecimal() else otherwise
