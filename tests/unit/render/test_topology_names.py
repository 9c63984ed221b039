"""The rank of a node and the address of the leader, in variables with the same names under each orchestrator."""

from dataclasses import replace
from typing import Any

import pytest
from dynamo_shared.api.objects import KubeObject

from .building import CONFIG, component, graph, graph_children, of_kind, variables, workloads
from .test_priority import LEADER_WORKER_SETS, TENSORS

RANK, LEADER = "DYNAMO_RANK", "DYNAMO_LEADER_ADDRESS"
READS = {**TENSORS, "env": [{"name": "WHERE", "value": "$(DYNAMO_RANK)@$(DYNAMO_LEADER_ADDRESS)"}]}
LATER: dict[str, Any] = {"runtimeVersionOverride": "1.6.0"}


def spread(nodes: int = 2, main: KubeObject | None = None, **fields: Any) -> KubeObject:
    return component(main=READS if main is None else main, multinode={"nodeCount": nodes}, **fields)


def with_leader_worker_sets(single: KubeObject) -> list[dict[str, str | None]]:
    (made,) = of_kind(workloads(graph(single), LEADER_WORKER_SETS)["Worker"], "LeaderWorkerSet")
    templates = (made["spec"]["leaderWorkerTemplate"][f"{role}Template"] for role in ("leader", "worker"))
    return [variables(each["spec"]["containers"][0]) for each in templates]


def with_grove(single: KubeObject, **fields: Any) -> dict[str, dict[str, str | None]]:
    config = replace(CONFIG, grove=True, device_claims=True)
    (made,) = of_kind(graph_children(graph(single, **fields), config), "PodCliqueSet")
    cliques = made["spec"]["template"]["cliques"]
    return {each["name"]: variables(each["spec"]["podSpec"]["containers"][0]) for each in cliques}


def test_leader_worker_set() -> None:
    leader, worker = with_leader_worker_sets(spread(3))
    assert (leader[RANK], worker[RANK]) == ("0", "$(LWS_WORKER_INDEX)")
    assert leader[LEADER] == worker[LEADER] == "$(LWS_LEADER_ADDRESS)"


@pytest.mark.parametrize(("nodes", "rank"), [(2, "1"), (3, "$(GROVE_PCSG_POD_INDEX)")])
def test_grove(nodes: int, rank: str) -> None:
    made = with_grove(spread(nodes))
    assert (made["worker-ldr"][RANK], made["worker-wkr"][RANK]) == ("0", rank)
    address = "$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-worker-ldr-0.$(GROVE_HEADLESS_SERVICE)"
    assert made["worker-ldr"][LEADER] == made["worker-wkr"][LEADER] == address


def test_grove_if_pods_of_a_rank_share_memory() -> None:
    main = {**READS, "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    shared = spread(main=main, experimental={"gpuMemoryService": {"mode": "InterPod"}})
    ranks = {name: each.get(RANK) for name, each in with_grove(shared, backendFramework="vllm").items()}
    assert ranks == {"worker-gms-0": None, "worker-ldr": "0", "worker-gms-1": None, "worker-wkr-1": "1"}


def test_a_variable_that_references_them_follows_them() -> None:
    leader, _ = with_leader_worker_sets(spread())
    names = list(leader)
    assert names.index("WHERE") > max(names.index(RANK), names.index(LEADER))


@pytest.mark.parametrize("field", ["command", "args"])
def test_a_command_may_reference_them(field: str) -> None:
    main = {**TENSORS, field: [*TENSORS[field], "--node-rank", "$(DYNAMO_RANK)"]}
    leader, _ = with_leader_worker_sets(spread(main=main))
    assert {RANK, LEADER} <= leader.keys()


def test_only_a_runtime_that_knows_them_gets_them() -> None:
    assert [RANK in each for each in with_leader_worker_sets(spread(main=TENSORS))] == [False, False]
    assert [RANK in each for each in with_leader_worker_sets(spread(main=TENSORS, **LATER))] == [True, True]


def test_a_variable_of_the_author_wins() -> None:
    main = {**READS, "env": [*READS["env"], {"name": RANK, "value": "7"}]}
    assert [each[RANK] for each in with_leader_worker_sets(spread(main=main))] == ["7", "7"]


def test_a_single_node_has_no_rank() -> None:
    (made, *_) = workloads(graph(component(main=READS, **LATER)))["Worker"]
    assert RANK not in variables(made["spec"]["template"]["spec"]["containers"][0])
