"""Whether the GPUs that pods claim are there: what a graph wants, what nodes have, and what of it is in use."""

from typing import Any

import pytest
from dynamo_dynadmin.api import fit
from dynamo_dynadmin.api.node_rules import NodeRules
from dynamo_shared.api.device_claims import KnownClaims

DRIVER = "gpu.nvidia.com"


def devices(**exactly: Any) -> dict[str, Any]:
    return {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": DRIVER, **exactly}}]}}


def claim(*gpus: int, node: str = "a", **exactly: Any) -> dict[str, Any]:
    """A ResourceClaim with the GPUs of a node that are allocated to it."""
    results = [{"request": "r", "driver": DRIVER, "pool": node, "device": f"gpu-{each}"} for each in gpus]
    allocation = {"allocation": {"devices": {"results": results}}} if gpus else {}
    return {"spec": devices(**exactly), "status": allocation}


def known(templates: dict[str, Any] | None = None, **claims: Any) -> KnownClaims:
    made = {name: {"spec": {"spec": spec}} for name, spec in (templates or {}).items()}
    return KnownClaims(made.get, claims.get)


def graph(*components: tuple[str, int, dict[str, str]], nodes: int = 0) -> dict[str, Any]:
    wide = {"multinode": {"nodeCount": nodes}} if nodes else {}

    def component(name: str, replicas: int, by: dict[str, str]) -> dict[str, Any]:
        template = {"spec": {"resourceClaims": [{"name": "gpus", **by}]}}
        return {"name": name, "replicas": replicas, "podTemplate": template, **wide}

    return {"spec": {"components": [component(*each) for each in components]}}


OWN, SHARED = {"resourceClaimTemplateName": "t"}, {"resourceClaimName": "c"}


def node(name: str, gpus: int = 0) -> dict[str, Any]:
    return {"metadata": {"name": name}, "status": {"allocatable": {"nvidia.com/gpu": str(gpus)} if gpus else {}}}


def published(name: str, gpus: int, kind: str = "gpu") -> dict[str, Any]:
    attributes = {"type": {"string": kind}, "productName": {"string": "H100"}}
    members = [{"name": f"gpu-{each}", "attributes": attributes} for each in range(gpus)]
    return {"spec": {"driver": DRIVER, "nodeName": name, "pool": {"name": name, "generation": 1}, "devices": members}}


def fitted(of: dict[str, Any], claims: KnownClaims | None, *rooms: fit.NodeRoom) -> dict[str, Any]:
    return fit.fit(fit.demands_of(of, claims), rooms, exact=True)


def room(name: str, free: int, total: int = 8, **more: Any) -> fit.NodeRoom:
    return fit.NodeRoom(name=name, product="H100", total=total, free=free, labels=more.pop("labels", {}), **more)


def placed(result: dict[str, Any]) -> list[tuple[str, str, int, int]]:
    return [(each["component"], each["node"], each["pods"], each["gpus"]) for each in result["placed"]]


def test_each_pod_gets_what_its_template_says() -> None:
    claims = known({"t": devices(count=4)})
    result = fitted(graph(("w", 2, OWN), nodes=2), claims, room("a", 8), room("b", 8))
    assert (result["fits"], result["needed"]) == (True, 16)
    assert placed(result) == [("w", "a", 2, 8), ("w", "b", 2, 8)]
    result = fitted(graph(("w", 2, OWN)), claims, room("a", 4))
    assert (result["fits"], result["needed"], result["missing"][0]["gpus"]) == (False, 8, 4)


def test_leaders_and_workers_may_have_pods_of_their_own() -> None:
    roles = [
        {"name": name, "podTemplate": {"spec": {"nodeSelector": {"kind": name}, "containers": [{"resources": asks}]}}}
        for name, asks in (("leader", {"limits": {"nvidia.com/gpu": 1}}), ("worker", {"limits": {"nvidia.com/gpu": 4}}))
    ]
    of = {"spec": {"components": [{"name": "w", "replicas": 2, "multinode": {"nodeCount": 3}, "roles": roles}]}}
    leader, worker = fit.demands_of(of)
    assert (leader.pods, leader.gpus, leader.nodes) == (2, 1, NodeRules({"kind": "leader"}))
    assert (worker.pods, worker.gpus, worker.nodes) == (4, 4, NodeRules({"kind": "worker"}))


def test_all_pods_that_share_a_claim_go_to_the_node_that_has_its_gpus() -> None:
    shared = graph(("w", 3, SHARED), ("x", 2, SHARED))
    result = fitted(shared, known(c=claim(count=6)), room("a", 5), room("b", 7))
    assert (result["fits"], result["needed"]) == (True, 6)
    assert ("w", "b", 3, 6) in placed(result)
    result = fitted(shared, known(c=claim(count=9)), room("a", 8), room("b", 8))
    assert [(each["component"], each["pods"], each["gpus"]) for each in result["missing"]] == [("w", 3, 9)]
    assert result["missing"][0]["why"] == "no node has 9 GPUs"
    # What it has got is in use already.
    result = fitted(shared, known(c=claim(0, 1, count=2)), room("a", 0))
    assert (result["fits"], result["needed"]) == (True, 0)


@pytest.mark.parametrize(("by", "claims"), [(OWN, known({"t": devices(allocationMode="All")})), (SHARED, None)])
def test_all_of_a_node_needs_a_node_that_is_free(by: dict[str, str], claims: KnownClaims | None) -> None:
    claims = claims or known(c=claim(allocationMode="All"))
    result = fitted(graph(("w", 1, by)), claims, room("a", 7), room("b", 4, 4))
    assert (result["fits"], result["needed"], placed(result)) == (True, 4, [("w", "b", 1, 4)])
    result = fitted(graph(("w", 1, by)), claims, room("a", 7))
    assert result["missing"][0]["why"] == "a replica needs all GPUs of a node, and no node has all its GPUs free"


def test_claims_that_cannot_be_counted_are_named() -> None:
    both = graph(("w", 1, OWN), ("x", 1, SHARED))
    result = fitted(both, known(), room("a", 8))
    assert result["uncounted"] == ["ResourceClaim c does not exist", "ResourceClaimTemplate t does not exist"]
    assert result["exact"] is False
    result = fitted(both, None, room("a", 8))
    assert result["uncounted"] == [
        "ResourceClaim c, which you may not read",
        "ResourceClaimTemplate t, which you may not read",
    ]


def test_nodes_have_the_gpus_that_a_driver_publishes() -> None:
    slices = [published("a", 8), published("b", 8), published("c", 7, "mig")]
    claims = [claim(0, 1), claim(0, node="b"), claim(5, node="gone"), claim()]
    pod = {
        "metadata": {"name": "p"},
        "spec": {"nodeName": "b", "containers": [{"name": "m", "resources": {"limits": {"nvidia.com/gpu": 3}}}]},
    }
    nodes = fit.nodes_of([node("a"), node("b", 4), node("c"), node("d", 2)], slices, fit.used_by([pod], claims))
    assert [(each.name, each.total, each.free, each.product) for each in nodes] == [
        ("a", 8, 6, "H100"),
        ("b", 8, 4, "H100"),
        ("d", 2, 2, ""),
    ]


def test_more_pods_than_a_cluster_usually_has_are_placed_where_there_is_room() -> None:
    """Pod after pod and node after node it were a hundred million steps, and those above ten thousand counted as missing."""
    nodes = [room(f"n{each:04}", 8) for each in range(5000)]
    result = fit.fit([fit.GpuDemand(component="a", pods=40_001, gpus=1)], nodes, exact=True)
    assert [(each["pods"], each["gpus"]) for each in result["missing"]] == [(1, 1)]
    assert (len(result["placed"]), result["needed"]) == (5000, 40_001)


def test_the_fullest_node_that_has_room_is_filled_first() -> None:
    demand = fit.GpuDemand(component="a", pods=4, gpus=2)
    result = fit.fit([demand], [room("a", 8), room("b", 5), room("c", 1), room("d", 5)], exact=True)
    assert placed(result) == [("a", "b", 2, 4), ("a", "d", 2, 4)]


TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
TOLERATION = {"key": "gpu", "operator": "Equal", "value": "yes"}


@pytest.mark.parametrize(
    ("nodes", "pods", "gpus", "fits"),
    [
        ([room("a", 8)], 2, 4, True),
        ([room("a", 6), room("b", 2)], 2, 4, False),
        ([room("a", 4), room("b", 4)], 2, 4, True),
        ([room("a", 8)], 1, 16, False),
        ([room("a", 8, schedulable=False)], 1, 1, False),
        ([], 1, 1, False),
        ([], 0, 1, True),
    ],
)
def test_pods_fit_where_one_node_has_their_gpus(nodes: list[fit.NodeRoom], pods: int, gpus: int, fits: bool) -> None:
    result = fit.fit([fit.GpuDemand("w", pods, gpus)], nodes, exact=True)
    assert result["fits"] is fits
    assert fits or result["missing"][0]["why"]


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def labelled(operator: str, *values: str, key: str = "gpu") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def named(operator: str, name: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [name]}]}


AFFINITY = "1 excluded by the node affinity"
AFFINITIES: list[tuple[list[dict[str, Any]], str | None]] = [
    ([labelled("In", "7", "8")], None),
    ([labelled("In", "7")], AFFINITY),
    ([labelled("In", "7", key="none")], AFFINITY),
    ([labelled("NotIn", "7")], None),
    ([labelled("NotIn", "8")], AFFINITY),
    ([labelled("NotIn", "8", key="none")], None),
    ([labelled("Exists")], None),
    ([labelled("Exists", key="none")], AFFINITY),
    ([labelled("DoesNotExist")], AFFINITY),
    ([labelled("DoesNotExist", key="none")], None),
    ([labelled("Gt", "7")], None),
    ([labelled("Gt", "8")], AFFINITY),
    ([labelled("Lt", "9")], None),
    ([labelled("Lt", "8")], AFFINITY),
    ([labelled("Lt", "9", key="zone")], AFFINITY),
    ([named("In", "a")], None),
    ([named("NotIn", "a")], AFFINITY),
    ([{**labelled("Exists"), **named("In", "b")}], AFFINITY),
    ([labelled("In", "7"), labelled("In", "8")], None),
    ([{}], AFFINITY),
    ([], AFFINITY),
]


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        ({}, "1 with taint gpu=yes:NoSchedule"),
        ({"tolerations": [TOLERATION]}, None),
        ({"nodeSelector": {"gpu": "8"}, "tolerations": [TOLERATION]}, None),
        ({"nodeSelector": {"gpu": "9"}}, "1 without the labels of the node selector"),
        *(({**affinity(*terms), "tolerations": [TOLERATION]}, why) for terms, why in AFFINITIES),
    ],
)
def test_pods_go_to_nodes_that_they_select_and_whose_taints_they_tolerate(pod: dict[str, Any], why: str | None) -> None:
    asks = {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}
    of = {"spec": {"components": [{"name": "w", "podTemplate": {"spec": {**pod, **asks}}}]}}
    only = room("a", 8, labels={"gpu": "8", "zone": "east"}, taints=(TAINT,))
    result = fitted(of, None, only)
    assert [each["why"] for each in result["missing"]] == ([why] if why else [])
