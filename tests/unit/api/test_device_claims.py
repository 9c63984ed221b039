"""GPUs that pods claim through dynamic resource allocation."""

from typing import Any

import pytest
from dynamo_shared.api import device_claims, gpus
from dynamo_shared.api.device_claims import KnownClaims, UncountedClaim
from dynamo_shared.api.gpus import ReplicaGpus
from dynamo_shared.api.resources import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS


def exactly(class_name: str = "gpu.nvidia.com", **fields: Any) -> dict[str, Any]:
    return {"name": "r", "exactly": {"deviceClassName": class_name, **fields}}


def first_of(*ways: dict[str, Any]) -> dict[str, Any]:
    named = [{"name": f"way-{number}", "deviceClassName": "gpu.nvidia.com", **way} for number, way in enumerate(ways)]
    return {"name": "r", "firstAvailable": named}


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
        # "All devices" of a node are as many as it has. Devices with admin access are not taken from others.
        (claim(exactly(allocationMode="All")), None),
        (claim(exactly(count=2), exactly(allocationMode="All")), None),
        (claim(exactly("rdma.nvidia.com", allocationMode="All")), 0),
        (claim(exactly(count=1, adminAccess=True)), 0),
        (claim(exactly(count="two")), 0),
        (claim(first_of({"count": 2}, {"count": 4})), 4),
        (claim(first_of({"allocationMode": "All"}, {"count": 4})), None),
    ],
)
def test_gpus_that_a_claim_requests(spec: dict[str, Any], expected: int | None) -> None:
    assert device_claims.requested(spec) == expected


def allocated(spec: dict[str, Any], *requests: str, node: str = "a", **fields: Any) -> dict[str, Any]:
    results = [
        {"request": request, "driver": "gpu.nvidia.com", "pool": node, "device": f"gpu-{index}", **fields}
        for index, request in enumerate(requests)
    ]
    return {"spec": spec, "status": {"allocation": {"devices": {"results": results}}}}


ALL = claim(exactly(allocationMode="All"))
ALTERNATIVES = claim(
    {
        "name": "r",
        "firstAvailable": [
            {"name": "all", "deviceClassName": "gpu.nvidia.com", "allocationMode": "All"},
            {"name": "nic", "deviceClassName": "rdma.nvidia.com", "count": 4},
        ],
    }
)


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        ({"spec": ALL}, None),
        ({"spec": ALL, "status": {"reservedFor": []}}, None),
        (allocated(ALL, "r", "r", "r"), 3),
        # A device that a claim has twice, as two shares, is one device.
        (allocated(claim(exactly(count=2)), "r", "r", device="gpu-0"), 1),
        (allocated(claim(exactly("rdma.nvidia.com", count=2)), "r", "r"), 0),
        (allocated(ALTERNATIVES, "r/all", "r/all"), 2),
        (allocated(ALTERNATIVES, "r/nic", "r/nic"), 0),
        (allocated(claim(exactly(allocationMode="All", adminAccess=True)), "r"), 0),
    ],
)
def test_gpus_that_a_claim_has_been_allocated(of: dict[str, Any], expected: int | None) -> None:
    assert device_claims.allocated(of) == expected


def test_devices_with_admin_access_stay_free_for_others() -> None:
    inspected = allocated(ALL, "r", adminAccess=True)
    assert list(device_claims.devices_of(inspected)) == []
    assert list(device_claims.devices_of(allocated(ALL, "r"))) == [("gpu.nvidia.com", "a", "gpu-0")]
    assert list(device_claims.devices_of({"spec": ALL})) == []


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
def test_device_classes_of_gpus_are_recognized_by_name(name: str, expected: bool) -> None:
    assert device_claims.is_gpu_class(name) is expected


def known(
    templates: dict[str, Any] | None = None, claims: dict[str, Any] | None = None, *pods: dict[str, Any]
) -> KnownClaims:
    return KnownClaims((templates or {}).get, (claims or {}).get, lambda: pods)


def template(spec: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"spec": spec}}


def component(*claims: dict[str, str], **fields: Any) -> dict[str, Any]:
    named = [{"name": f"c{index}", **each} for index, each in enumerate(claims)]
    return {"podTemplate": {"spec": {"containers": [{"name": "main"}], "resourceClaims": named}}, **fields}


def by_template(name: str) -> dict[str, str]:
    return {"resourceClaimTemplateName": name}


def by_name(name: str) -> dict[str, str]:
    return {"resourceClaimName": name}


def test_claims_are_added_to_the_gpus_of_containers_on_each_node() -> None:
    counted = component(by_template("pair"), by_template("nics"), multinode={"nodeCount": 2})
    counted["podTemplate"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    templates = {"pair": template(claim(exactly(count=2))), "nics": template(claim(exactly("rdma.nvidia.com")))}
    assert gpus.of_replica(counted, known(templates)) == ReplicaGpus(6)
    assert gpus.of_replica(counted) == ReplicaGpus(2)


def test_a_claim_shared_by_pods_counts_once() -> None:
    counted = component(by_name("four"), by_name("four"), by_name("nics"), multinode={"nodeCount": 2})
    claims = {"four": {"spec": claim(exactly(count=4))}, "nics": {"spec": claim(exactly("rdma.nvidia.com"))}}
    assert gpus.of_replica(counted, known(None, claims)) == ReplicaGpus(0, {"four": 4})


def test_a_shared_claim_counts_its_allocated_devices() -> None:
    alternatives = {"name": "r", "firstAvailable": [{"name": n, **exactly(count=int(n))["exactly"]} for n in "84"]}
    asked = claim(alternatives)
    sharing = component(by_name("c"))
    assert gpus.of_replica(sharing, known(None, {"c": {"spec": asked}})).shared == {"c": 8}
    got = allocated(asked, *["r/4"] * 4)
    assert gpus.of_replica(sharing, known(None, {"c": got})).shared == {"c": 4}


def test_all_devices_of_a_node_are_unknown_before_the_allocation() -> None:
    counted = component(by_template("all"), by_name("rest"))
    templates, claims = {"all": template(ALL)}, {"rest": {"spec": ALL}}
    result = gpus.of_replica(counted, known(templates, claims))
    assert (result.own, result.shared) == (0, {})
    why = "requests all devices of a node, and is not allocated yet"
    assert list(map(str, result.unknown)) == [f"ResourceClaimTemplate all {why}", f"ResourceClaim rest {why}"]


def test_all_devices_of_a_node_are_those_of_the_pod_with_most() -> None:
    """Nodes may differ, and the next pod may run on the largest."""
    counted = component(by_template("all"), by_name("rest"), multinode={"nodeCount": 2})
    pods = [
        {"status": {"resourceClaimStatuses": [{"name": "c0", "resourceClaimName": name}, {"name": "c1"}]}}
        for name in ("on-a", "on-b", "waits", "away")
    ]
    claims = {
        "on-a": allocated(ALL, *["r"] * 4),
        "on-b": allocated(ALL, *["r"] * 8, node="b"),
        "waits": {"spec": ALL},
        "rest": allocated(ALL, "r", node="c"),
    }
    result = gpus.of_replica(counted, known({"all": template(ALL)}, claims, *pods))
    assert result == ReplicaGpus(16, {"rest": 1})
    # The template may be deleted while its claims exist.
    assert gpus.of_replica(counted, known({}, claims, *pods)) == result


def test_all_devices_of_a_node_are_those_of_pods_of_the_same_role() -> None:
    """Roles may use the same claim name for different templates."""
    own = {"leader": "small", "worker": "large"}
    roles = [{"name": role, "podTemplate": component(by_template(name))["podTemplate"]} for role, name in own.items()]
    pods = [
        {
            "spec": component(by_template(name))["podTemplate"]["spec"],
            "status": {"resourceClaimStatuses": [{"name": "c0", "resourceClaimName": name}]},
        }
        for name in own.values()
    ]
    claims = {"small": allocated(ALL, "r"), "large": allocated(ALL, *["r"] * 8)}
    templates = {name: template(ALL) for name in own.values()}
    counted = {"multinode": {"nodeCount": 3}, "roles": roles}
    assert gpus.of_replica(counted, known(templates, claims, *pods)) == ReplicaGpus(1 + 2 * 8)


def test_a_missing_claim_may_have_gpus() -> None:
    result = gpus.of_replica(component(by_template("t"), by_name("c")), known())
    assert list(map(str, result.unknown)) == [
        "ResourceClaimTemplate t does not exist",
        "ResourceClaim c does not exist",
    ]


def test_thousands_of_unknown_claims_are_not_compared_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph of a megabyte can name 16,000 claims: comparing them in pairs took more than a minute."""
    compared: list[object] = []
    equal = UncountedClaim.__eq__

    def counted(one: UncountedClaim, other: object) -> bool:
        compared.append(other)
        return equal(one, other)

    monkeypatch.setattr(UncountedClaim, "__eq__", counted)
    names = [f"t{number}" for number in range(100)]
    named = [{"name": name, "resourceClaimTemplateName": name} for name in (*names, *names)]
    component = {"podTemplate": {"spec": {"containers": [], "resourceClaims": named}}}
    result = gpus.of_replica(component, KnownClaims(lambda _: None, lambda _: None))
    assert [each.name for each in result.unknown] == names
    assert len(compared) <= 3 * len(names)


def test_pods_are_read_once_however_many_claims_a_spec_names() -> None:
    reads: list[int] = []

    def pods() -> list[dict[str, Any]]:
        reads.append(len(reads))
        return []

    named = [{"name": f"c{number}", "resourceClaimTemplateName": "t"} for number in range(3)]
    known = KnownClaims(lambda _: None, lambda _: None, pods)
    assert len(device_claims.of_pods({"resourceClaims": named}, known).unknown) == 3
    assert reads == [0]


def test_graphs_that_a_claim_concerns() -> None:
    components = [{"name": "f"}, component(by_template("t"), by_name("c"))]
    graph = {"metadata": {"namespace": "ns"}, "spec": {"components": components}}
    assert device_claims.keys_named(RESOURCE_CLAIM_TEMPLATES, graph) == ["ns/t"]
    assert device_claims.keys_named(RESOURCE_CLAIMS, graph) == ["ns/c"]


def uses(*claims: dict[str, str]) -> dict[str, Any]:
    return {"name": "main", "resources": {"claims": list(claims)}}


def of_main(*used: dict[str, str]) -> device_claims.ClaimedGpus:
    pod = {"resourceClaims": [{"name": "own", **by_template("t")}, {"name": "common", **by_name("c")}, {"name": "odd"}]}
    pod["resourceClaims"] += [{"name": "lost", **by_template("gone")}, {"name": "all", **by_name("whole")}]
    of_t = claim(exactly(count=4), {**exactly(count=2), "name": "more"}, {**exactly("rdma.nvidia.com"), "name": "nic"})
    claims = {"c": {"spec": claim(exactly())}, "whole": {"spec": ALL}}
    return device_claims.of_container(pod, uses(*used), {"t": template(of_t)}.get, claims.get)


def test_a_container_has_the_gpus_of_the_claims_that_it_names() -> None:
    assert of_main() == device_claims.ClaimedGpus()
    assert of_main({"name": "own"}).own == 6
    both = of_main({"name": "own", "request": "more"}, {"name": "common"})
    assert both == device_claims.ClaimedGpus(own=2, shared={"c": 1})
    assert of_main({"name": "own", "request": "more"}, {"name": "own", "request": "more"}).own == 2
    assert of_main({"name": "odd"}, {"name": "unknown"}) == device_claims.ClaimedGpus()


def test_the_gpus_of_some_claims_of_a_container_are_unknown() -> None:
    assert [*map(str, of_main({"name": "lost"}, {"name": "all"}).unknown)] == [
        "ResourceClaim whole requests all devices of a node, and is not allocated yet",
        "ResourceClaimTemplate gone does not exist",
    ]
