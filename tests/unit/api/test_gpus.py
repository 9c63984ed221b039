"""GPUs of one replica and of its engine: containers times nodes, and claims."""

from typing import Any

import pytest
from dynamo_shared.api import gpus


def asking(**amounts: Any) -> dict[str, Any]:
    return {"name": "main", "resources": {"limits": {name.replace("__", ".com/"): n for name, n in amounts.items()}}}


MAIN = asking(nvidia__gpu=4)
SIDECAR = {**asking(nvidia__gpu=1), "name": "sidecar", "restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("component", "expected"),
    [
        ({}, 0),
        ({"podTemplate": {"spec": {"containers": [{"name": "main"}]}}}, 0),
        ({"podTemplate": {"spec": {"containers": [asking(nvidia__gpu="4")]}}}, 4),
        ({"podTemplate": {"spec": {"containers": [asking(nvidia__gpu=4), asking(amd__gpu="1")]}}}, 5),
        ({"podTemplate": {"spec": {"containers": [asking(nvidia__gpu="8")]}}, "multinode": {"nodeCount": 3}}, 24),
        ({"podTemplate": {"spec": {"containers": [asking(nvidia__gpu="8")]}}, "multinode": {}}, 16),
        ({"podTemplate": {"spec": {"containers": [asking(nvidia__gpu="many")]}}}, 0),
        (
            {
                "multinode": {"nodeCount": 3},
                "roles": [
                    {"name": "leader", "podTemplate": {"spec": {"containers": [asking(nvidia__gpu=1)]}}},
                    {"name": "worker", "podTemplate": {"spec": {"containers": [asking(nvidia__gpu=4)]}}},
                ],
            },
            9,
        ),
        (
            {
                "podTemplate": {"spec": {"containers": [asking(nvidia__gpu=2)]}},
                "multinode": {},
                "roles": [{"name": "leader"}, {"name": "worker", "podTemplate": {"spec": {"containers": []}}}],
            },
            2,
        ),
        # Init containers end before the others start, unless they are sidecars.
        ({"podTemplate": {"spec": {"initContainers": [asking(nvidia__gpu=8)], "containers": [MAIN]}}}, 8),
        ({"podTemplate": {"spec": {"initContainers": [asking(nvidia__gpu=2)], "containers": [MAIN]}}}, 4),
        ({"podTemplate": {"spec": {"initContainers": [SIDECAR], "containers": [MAIN]}}}, 5),
        (
            {
                "podTemplate": {"spec": {"initContainers": [SIDECAR, asking(nvidia__gpu=8)], "containers": [MAIN]}},
                "multinode": {},
            },
            18,
        ),
        # Values that no pod would get: a negative one would give away the GPUs of others.
        ({"podTemplate": {"spec": {"containers": [asking(nvidia__gpu="-8"), asking(nvidia__gpu=1)]}}}, 1),
        ({"podTemplate": {"spec": {"containers": [asking(nvidia__gpu="1")]}}, "multinode": {"nodeCount": -3}}, 1),
        ({"podTemplate": {"spec": {"containers": [asking(nvidia__gpu="9E")]}}, "multinode": {}}, gpus.MAX_GPUS),
    ],
)
def test_gpus_of_a_replica(component: dict[str, Any], expected: int) -> None:
    assert gpus.of_replica(component) == gpus.ReplicaGpus(expected)


def claiming(name: str, **by: str) -> dict[str, Any]:
    """A pod template whose `main` has a claim, next to a sidecar with a GPU."""
    main = {"name": "main", "resources": {"claims": [{"name": name}]}}
    return {"spec": {"containers": [main, SIDECAR], "resourceClaims": [{"name": name, **by}]}}


def requests(*ways: dict[str, Any]) -> dict[str, Any]:
    return {"devices": {"requests": [{"name": f"r{number}", **way} for number, way in enumerate(ways)]}}


def exactly(class_name: str = "gpu.nvidia.com", **fields: Any) -> dict[str, Any]:
    return {"exactly": {"deviceClassName": class_name, **fields}}


OF_POD, SHARED = {"resourceClaimTemplateName": "two"}, {"resourceClaimName": "two"}
TEMPLATES = {
    "two": requests(exactly(count=2)),
    "nic": requests(exactly("rdma.nvidia.com")),
    "all": requests(exactly(allocationMode="All")),
    "either": requests({"firstAvailable": [{"deviceClassName": "gpu.nvidia.com", "count": n} for n in (2, 4)]}),
}
LEADER = {"name": "leader", "podTemplate": {"spec": {"containers": [asking(nvidia__gpu=1)]}}}
OTHER = {"name": "worker", "podTemplate": {"spec": {"containers": [MAIN, SIDECAR]}}}


@pytest.mark.parametrize(
    ("component", "expected"),
    [
        # Without GPUs it is 0, not unknown.
        ({}, (0, 0)),
        ({"podTemplate": {"spec": {"containers": [{"name": "main"}]}}}, (0, 0)),
        ({"podTemplate": {"spec": {"containers": [MAIN]}}}, (4, 4)),
        ({"podTemplate": {"spec": {"containers": [MAIN]}}, "multinode": {"nodeCount": 3}}, (12, 12)),
        # Other containers do not belong to the engine.
        ({"podTemplate": {"spec": {"containers": [MAIN, SIDECAR]}}, "multinode": {}}, (8, 10)),
        ({"podTemplate": {"spec": {"containers": [SIDECAR]}}}, (0, 1)),
        (
            {
                "podTemplate": {"spec": {"initContainers": [SIDECAR, asking(nvidia__gpu=8)], "containers": [MAIN]}},
                "multinode": {},
            },
            (8, 18),
        ),
        # Roles with their own pods.
        ({"multinode": {"nodeCount": 3}, "roles": [LEADER, OTHER]}, (9, 11)),
        ({"multinode": {}, "roles": [LEADER, {"name": "worker"}], "podTemplate": OTHER["podTemplate"]}, (5, 6)),
        # With a template each pod has its own claim; a claim by name is one for all.
        ({"podTemplate": claiming("x", **OF_POD)}, (2, 3)),
        ({"podTemplate": claiming("x", **OF_POD), "multinode": {}}, (4, 6)),
        ({"podTemplate": claiming("x", **SHARED), "multinode": {}}, (2, 4)),
        (
            {
                "multinode": {},
                "roles": [
                    {"name": "leader", "podTemplate": claiming("x", **SHARED)},
                    {"name": "worker", "podTemplate": claiming("y", **SHARED)},
                ],
            },
            (2, 4),
        ),
        ({"podTemplate": claiming("x", resourceClaimTemplateName="nic")}, (0, 1)),
        ({"podTemplate": claiming("x", resourceClaimTemplateName="either")}, (4, 5)),
        # If a claim does not say the number, it is unknown and not reported.
        ({"podTemplate": claiming("x", resourceClaimTemplateName="all")}, None),
        ({"podTemplate": claiming("x", resourceClaimTemplateName="gone")}, None),
        ({"podTemplate": claiming("x", resourceClaimName="gone")}, None),
        ({"podTemplate": {"spec": {"containers": [asking(nvidia__gpu="9E")]}}, "multinode": {}}, (gpus.MAX_GPUS,) * 2),
    ],
)
def test_gpus_of_an_engine_and_of_one_more_replica(component: dict[str, Any], expected: tuple[int, int] | None) -> None:
    templates = {name: {"spec": {"spec": spec}} for name, spec in TEMPLATES.items()}
    # The allocation does not count: the claim requests two.
    results = [{"request": "r0", "driver": "d", "pool": "p", "device": f"gpu-{number}"} for number in range(7)]
    claims = {"two": {"spec": TEMPLATES["two"], "status": {"allocation": {"devices": {"results": results}}}}}
    counted = gpus.shape(component, templates.get, claims.get)
    assert counted == (None if expected is None else gpus.GpuShape(*expected))
