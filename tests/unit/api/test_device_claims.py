"""GPUs that pods claim through dynamic resource allocation."""

from __future__ import annotations

from typing import Any

import pytest
from dynamo_shared.api import device_claims, gpus


def exactly(class_name: str = "gpu.nvidia.com", **fields: Any) -> dict[str, Any]:
    return {"name": "r", "exactly": {"deviceClassName": class_name, **fields}}


def claim(*requests: dict[str, Any]) -> dict[str, Any]:
    return {"devices": {"requests": list(requests)}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, 0),
        (claim(exactly()), 1),
        (claim(exactly(count=4, allocationMode="ExactCount")), 4),
        (claim(exactly(count=2), exactly("mig.nvidia.com", count=3)), 5),
        (claim(exactly(count=8), exactly("rdma.nvidia.com", count=8)), 8),
        # All devices of a node, and those that are only inspected, name no number.
        (claim(exactly(allocationMode="All")), 0),
        (claim(exactly(count=1, adminAccess=True)), 0),
        (claim(exactly(count="two")), 0),
        (
            claim(
                {
                    "name": "r",
                    "firstAvailable": [
                        {"name": "large", "deviceClassName": "gpu.nvidia.com", "count": 2},
                        {"name": "small", "deviceClassName": "gpu.nvidia.com", "count": 4},
                    ],
                }
            ),
            4,
        ),
    ],
)
def test_gpus_of_a_claim(spec: dict[str, Any], expected: int) -> None:
    assert device_claims.count(spec) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpu.nvidia.com", True),
        ("gpu.intel.com", True),
        ("team-gpus", True),
        ("mig.nvidia.com", True),
        ("compute-domain-daemon.nvidia.com", False),
        ("migration.example.com", False),
    ],
)
def test_classes_of_gpus_are_known_by_their_names(name: str, expected: bool) -> None:
    assert device_claims.is_gpu_class(name) is expected


def test_claims_count_next_to_containers_on_each_node() -> None:
    templates = {"pair": {"spec": {"spec": claim(exactly(count=2))}}}
    pod = {
        "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}],
        "resourceClaims": [
            {"name": "a", "resourceClaimTemplateName": "pair"},
            {"name": "b", "resourceClaimTemplateName": "unknown"},
            {"name": "all-replicas-share-it", "resourceClaimName": "pair"},
        ],
    }
    component = {"podTemplate": {"spec": pod}, "multinode": {"nodeCount": 2}}
    assert gpus.of_replica(component, templates.get) == 6
    assert gpus.of_replica(component) == 2
    graph = {"spec": {"components": [{"name": "f"}, component]}}
    assert [device_claims.claims_by(graph, name) for name in ("pair", "other")] == [True, False]
