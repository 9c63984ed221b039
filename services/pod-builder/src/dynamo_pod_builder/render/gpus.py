"""How many GPUs a container asks for, whatever its resource is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamo_shared.api import quantity

NVIDIA_GPU = "nvidia.com/gpu"


def count(container: Mapping[str, Any]) -> int:
    """GPUs of a container: requests before limits, NVIDIA's before any other resource that is a GPU by its name."""
    resources = container.get("resources") or {}
    amounts = [resources.get("requests") or {}, resources.get("limits") or {}]
    for wanted in (lambda name: name == NVIDIA_GPU, is_gpu):
        for amount in amounts:
            for name in sorted(amount):
                if wanted(name) and (number := _whole(amount[name])):
                    return number
    return 0


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
        return int(quantity.parse(amount))
    except quantity.InvalidQuantity:
        return 0
