"""GPUs of one replica and of its engine: containers times nodes, and claims."""

from collections.abc import Sequence
from typing import Any

import pytest
from dynamo_shared.api import gpus


def asking(**amounts: Any) -> dict[str, Any]:
    return {"name": "main", "resources": {"limits": {name.replace("__", ".com/"): n for name, n in amounts.items()}}}


MAIN = asking(nvidia__gpu=4)
SIDECAR = {**asking(nvidia__gpu=1), "name": "sidecar", "restartPolicy": "Always"}
LEADER = {"name": "leader", "podTemplate": {"spec": {"containers": [asking(nvidia__gpu=1)]}}}


def of_pods(*containers: dict[str, Any], init: Sequence[dict[str, Any]] = (), **fields: Any) -> dict[str, Any]:
    """What has pods with these containers: a component, or a role of one."""
    return {"podTemplate": {"spec": {"containers": [*containers], "initContainers": [*init]}}, **fields}


@pytest.mark.parametrize(
    ("component", "expected"),
    [
        ({}, 0),
        (of_pods({"name": "main"}), 0),
        (of_pods(asking(nvidia__gpu="4")), 4),
        (of_pods(MAIN, asking(amd__gpu="1")), 5),
        (of_pods(asking(nvidia__gpu="8"), multinode={"nodeCount": 3}), 24),
        (of_pods(asking(nvidia__gpu="8"), multinode={}), 16),
        (of_pods(asking(nvidia__gpu="many")), 0),
        ({"multinode": {"nodeCount": 3}, "roles": [LEADER, of_pods(MAIN, name="worker")]}, 9),
        (of_pods(MAIN, multinode={}, roles=[{"name": "leader"}, of_pods(name="worker")]), 4),
        # Init containers end before the others start, unless they are sidecars.
        (of_pods(MAIN, init=[asking(nvidia__gpu=8)]), 8),
        (of_pods(MAIN, init=[asking(nvidia__gpu=2)]), 4),
        (of_pods(MAIN, init=[SIDECAR]), 5),
        (of_pods(MAIN, init=[SIDECAR, asking(nvidia__gpu=8)], multinode={}), 18),
        # Values that no pod would get: a negative one would give away the GPUs of others.
        (of_pods(asking(nvidia__gpu="-8"), asking(nvidia__gpu=1)), 1),
        (of_pods(asking(nvidia__gpu="1"), multinode={"nodeCount": -3}), 1),
        (of_pods(asking(nvidia__gpu="9E"), multinode={}), gpus.MAX_GPUS),
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
OTHER = of_pods(MAIN, SIDECAR, name="worker")


@pytest.mark.parametrize(
    ("component", "expected"),
    [
        # Without GPUs it is 0, not unknown.
        ({}, (0, 0)),
        (of_pods({"name": "main"}), (0, 0)),
        (of_pods(MAIN), (4, 4)),
        (of_pods(MAIN, multinode={"nodeCount": 3}), (12, 12)),
        # Other containers do not belong to the engine.
        (of_pods(MAIN, SIDECAR, multinode={}), (8, 10)),
        (of_pods(SIDECAR), (0, 1)),
        (of_pods(MAIN, init=[SIDECAR, asking(nvidia__gpu=8)], multinode={}), (8, 18)),
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
        (of_pods(asking(nvidia__gpu="9E"), multinode={}), (gpus.MAX_GPUS,) * 2),
    ],
)
def test_gpus_of_an_engine_and_of_one_more_replica(component: dict[str, Any], expected: tuple[int, int] | None) -> None:
    templates = {name: {"spec": {"spec": spec}} for name, spec in TEMPLATES.items()}
    # The allocation does not count: the claim requests two.
    results = [{"request": "r0", "driver": "d", "pool": "p", "device": f"gpu-{number}"} for number in range(7)]
    claims = {"two": {"spec": TEMPLATES["two"], "status": {"allocation": {"devices": {"results": results}}}}}
    counted = gpus.shape(component, templates.get, claims.get)
    assert counted == (None if expected is None else gpus.GpuShape(*expected))
