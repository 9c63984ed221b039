"""How many GPUs containers and replicas ask for, whatever the resource is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamo_shared.api import device_claims, quantity

NVIDIA_GPU = "nvidia.com/gpu"
#: Nodes of a multi-node replica that names no number (v1beta1 `multinode.nodeCount`).
DEFAULT_NODES = 2
#: GPUs of one replica at most, whatever it says. A graph's schema takes any quantity, which no pod would get: one below zero
#: would give a budget back what others use.
MOST = 1_000_000


def count(container: Mapping[str, Any]) -> int:
    """GPUs of a container: requests before limits, NVIDIA's before any other resource that is a GPU by its name."""
    resources = container.get("resources") or {}
    amounts = [resources.get("requests") or {}, resources.get("limits") or {}]
    for matches in (lambda name: name == NVIDIA_GPU, is_gpu):
        for amount in amounts:
            for name in sorted(amount):
                if matches(name) and (number := _whole(amount[name])):
                    return number
    return 0


def words(count: int) -> str:
    """A number of GPUs, as messages say it."""
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


def of_replica(component: Mapping[str, Any], templates: device_claims.Templates = device_claims.no_templates) -> int:
    """GPUs of one replica of a v1beta1 component, as JSON has it: those of its containers and claims, on each of its nodes.

    `templates` are the ResourceClaimTemplates of its namespace. 0 where it asks for none in a way that can be counted.
    """
    template = (component.get("podTemplate") or {}).get("spec") or {}
    multinode = component.get("multinode")
    nodes = 1 if multinode is None else multinode.get("nodeCount", DEFAULT_NODES)
    each = sum(count(container) for container in template.get("containers") or ())
    each += device_claims.of_pod(template, templates)
    return min(MOST, max(1, int(nodes)) * each)


def is_gpu(name: str) -> bool:
    """Whether a resource is a GPU or a slice of one."""
    return (
        name in ("gpu", "nvidia/gpu")
        or name.endswith("/gpu")
        or ".com/gpu" in name
        or name.startswith("mig-")
        or "/mig-" in name
    )


def _whole(amount: Any) -> int:
    try:
        return min(MOST, max(0, int(quantity.parse(amount))))
    except quantity.InvalidQuantity:
        return 0
