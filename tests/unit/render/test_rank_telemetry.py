"""Ports of NIXL telemetry if SGLang runs several ranks in one container: each rank has its own (dynamo#14284)."""

from typing import Any

import pytest
from dynamo_pod_builder.render.config import ObservedComponent, RoleClaims
from dynamo_pod_builder.render.errors import RenderError
from dynamo_shared.api.device_claims import ClaimedGpus
from dynamo_shared.api.objects import KubeObject

from . import test_multinode
from .building import component, graph, main, of_kind, workloads
from .test_priority import LEADER_WORKER_SETS

ENABLE, EXPORTER, BASE = "NIXL_TELEMETRY_ENABLE", "NIXL_TELEMETRY_EXPORTER", "NIXL_TELEMETRY_PROMETHEUS_PORT"
ON = {"name": ENABLE, "value": "y"}
SOURCE = {"configMapKeyRef": {"name": "telemetry", "key": "it"}}
MOST = 8
LATER = {"runtimeVersionOverride": "1.5.0"}


def engine(*variables: KubeObject, gpus: int = 4, **fields: Any) -> KubeObject:
    """A worker with that many GPUs; `ports` and `command` belong to its main container."""
    container: KubeObject = {"env": list(variables), "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    container |= {key: fields.pop(key) for key in ("ports", "command") if key in fields}
    return component(main=container, **{**LATER, **fields})


def ports(single: KubeObject, framework: str = "sglang") -> dict[str, int]:
    made = main(single, backendFramework=framework).get("ports", [])
    return {each["name"]: each["containerPort"] for each in made if each["name"].startswith("nixl")}


def row(length: int, base: int = 19090) -> dict[str, int]:
    return {"nixl" if rank == 0 else f"nixl-{rank}": base + rank for rank in range(length)}


@pytest.mark.parametrize("gpus", [1, 2, 8])
def test_each_rank_has_one_port(gpus: int) -> None:
    assert ports(engine(ON, gpus=gpus)) == row(gpus)
    assert ports(engine({"name": ENABLE, "value": " Y "}, gpus=gpus)) == row(gpus)


@pytest.mark.parametrize(
    "single",
    [
        engine(),
        engine({"name": ENABLE, "value": "true"}),
        engine(ON, {"name": EXPORTER, "value": "file"}, {"name": BASE, "valueFrom": SOURCE}),
        engine(ON, runtimeVersionOverride="1.4.0"),
        engine(ON, runtimeVersionOverride=None),
        engine(ON, gpus=0),
        engine(ON, {"name": BASE, "valueFrom": SOURCE}, gpus=1),
    ],
    ids=["off", "another word", "another exporter", "before 1.5", "no version", "no GPU", "a port that is read"],
)
def test_one_port_stays(single: KubeObject) -> None:
    assert ports({key: value for key, value in single.items() if value is not None}) == row(1)


def test_other_engines_have_one_port() -> None:
    assert ports(engine(ON), "vllm") == row(1)


def test_other_ports_stay() -> None:
    own = [{"name": "nixl", "containerPort": 19090}, {"containerPort": 7000}]
    made = main(engine(ON, ports=own, gpus=2), backendFramework="sglang")["ports"]
    assert [each["containerPort"] for each in made] == [7000, 19090, 19091]
    assert own == [{"name": "nixl", "containerPort": 19090}, {"containerPort": 7000}]


def test_correct_ports_stay_unchanged() -> None:
    numbers = {"nixl": 19090, "system": 9090}
    own = [{"name": name, "containerPort": number, "protocol": "TCP"} for name, number in numbers.items()]
    for variables in ([], [ON]):
        assert main(engine(*variables, ports=own, gpus=1), backendFramework="sglang")["ports"] == own


def test_ranks_are_counted_on_one_node() -> None:
    spread = engine(ON, command=["python3", "-m", "dynamo.sglang"], multinode={"nodeCount": 2})
    (made,) = of_kind(
        workloads(graph(spread, backendFramework="sglang"), LEADER_WORKER_SETS)["Worker"], "LeaderWorkerSet"
    )
    for role in ("leader", "worker"):
        container = made["spec"]["leaderWorkerTemplate"][f"{role}Template"]["spec"]["containers"][0]
        assert [each["name"] for each in container["ports"]] == ["system", *row(4)]


def test_frontends_have_none() -> None:
    assert ports(engine(ON, type_="frontend")) == {}


def test_another_first_port_moves_all_ports() -> None:
    moved = {"name": BASE, "value": " 30500 "}
    assert ports(engine(ON, moved)) == row(4, 30500)
    stale = [{"name": "nixl-1", "containerPort": 19091}, {"name": "nixl", "containerPort": 19090}]
    assert ports(engine(ON, moved, ports=stale)) == row(4, 30500)


@pytest.mark.parametrize("gpus", [8, 16])
@pytest.mark.parametrize("name", [ENABLE, EXPORTER])
def test_a_number_of_ranks_known_only_to_the_container_gets_all_ports(name: str, gpus: int) -> None:
    assert ports(engine(ON, {"name": name, "valueFrom": SOURCE}, gpus=gpus)) == row(8)


@pytest.mark.parametrize(
    ("variables", "gpus", "says"),
    [
        ([], 16, "has 16 GPUs, but only 8 ranks of a container can have a port for NIXL's telemetry"),
        ([{"name": BASE, "value": "many"}], 4, "'many' is not a valid port"),
        ([{"name": BASE}], 4, "'' is not a valid port"),
        ([{"name": BASE, "value": "0"}], 4, "'0' is not a valid port"),
        ([{"name": BASE, "value": "70000"}], 4, "'70000' is not a valid port"),
        ([{"name": BASE, "value": "9" * 5000}], 4, "9' is not a valid port"),  # Python refuses to read it
        ([{"name": BASE, "value": "١٢٣٤"}], 4, "'١٢٣٤' is not a valid port"),
        ([{"name": BASE, "value": "65535"}], 4, "'65535' leaves no ports for 4 ranks"),
        ([{"name": BASE, "value": "9088"}], 4, "gives 4 ranks the ports from 9088 on, but 9090 is another port"),
        ([{"name": BASE, "valueFrom": SOURCE}], 4, "has a value that only the container knows"),
    ],
)
def test_ports_that_cannot_be_declared(variables: list[KubeObject], gpus: int, says: str) -> None:
    with pytest.raises(RenderError) as caught:
        ports(engine(ON, *variables, gpus=gpus))
    assert says in str(caught.value)
    assert f"set {ENABLE} to n" in str(caught.value)


def test_the_ranks_of_each_role_are_the_gpus_that_its_pods_claim() -> None:
    claiming = {"env": [ON], "resources": {"claims": [{"name": "gpus"}]}}
    spread = test_multinode.component("sglang", [], gpu=0, container=claiming, runtimeVersionOverride="1.5.0")
    template = spread["spec"].pop("podTemplate")
    spread["spec"]["roles"] = [{"name": role, "podTemplate": template} for role in ("leader", "worker")]
    around = ObservedComponent(claimed=RoleClaims(serving=ClaimedGpus(own=2), workers=ClaimedGpus(own=4)))
    made = [
        {each["name"]: each["containerPort"] for each in container["ports"] if each["name"].startswith("nixl")}
        for container in test_multinode.mains(spread, around)
    ]
    assert made == [row(2), row(4)]
