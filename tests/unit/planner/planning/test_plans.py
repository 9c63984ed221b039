"""The graphs that are planned, their plans, and the messages for graphs that cannot be planned."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from dynamo_planner.core.limits import Limits
from dynamo_planner.core.observation import Pool
from dynamo_planner.planning.plans import NotPlannable, PlannedGraph, config_map_of, read_plan
from dynamo_shared.api.contracts.planner import PlanningPolicy
from dynamo_shared.api.device_claims import NotCounted, UncountedClaim
from dynamo_shared.api.gpus import ReplicaGpus
from dynamo_shared.api.resources import CONFIG_MAPS, DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey

from tests.building.objects import object_of, stored_object

PREFILL = {"prefill_isl": [100, 1000, 4000], "prefill_ttft": [10, 100, 400]}


def component(name: str, type_: str, gpus: str = "2") -> dict[str, Any]:
    limits = {"nvidia.com/gpu": gpus}
    pod_template = {"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}}
    return {"name": name, "type": type_, "podTemplate": pod_template}


def graph(*components: dict[str, Any], config: str = "planner-config-g") -> dict[str, Any]:
    annotations = {"nvidia.com/planner-config": config} if config else {}
    spec = {"components": list(components)}
    return stored_object(DYNAMO_GRAPH_DEPLOYMENTS, "g", uid="u", annotations=annotations, spec=spec)


DISAGG = (component("Frontend", "frontend", "0"), component("P", "prefill"), component("D", "decode", "4"))


def config_map(value: Any, key: str = "planner_config.json") -> dict[str, Any]:
    return object_of(
        CONFIG_MAPS, "planner-config-g", data={key: value if isinstance(value, str) else json.dumps(value)}
    )


def test_a_graph_without_the_annotation_is_not_planned() -> None:
    assert config_map_of(graph(config="")) == ""
    assert config_map_of(graph()) == "planner-config-g"


def test_a_plan_has_pools_gpus_policy_and_profile() -> None:
    profile = {"metadata": {"name": "x"}, "data": {"prefill_raw_data.json": json.dumps(PREFILL)}}
    plan = read_plan(graph(*DISAGG), config_map({"mode": "disagg"}), profile)
    assert plan.graph == ObjectKey("ns", "g")
    assert plan.components == {Pool.PREFILL: "P", Pool.DECODE: "D"}
    assert plan.gpus == {Pool.PREFILL: 2, Pool.DECODE: 4}
    assert plan.config.policy is PlanningPolicy.ADAPTIVE
    assert plan.profile is not None
    assert [point.isl for point in plan.profile.prefill] == [100, 1000, 4000]
    assert plan == read_plan(graph(*DISAGG), config_map({"mode": "disagg"}), profile)
    assert plan != read_plan(graph(*DISAGG), config_map({"mode": "disagg", "policy": "reference"}), profile)


@pytest.mark.parametrize(
    ("kind", "settings", "prefill", "decode"),
    [
        ("PodClique", {}, 1, 3),
        ("PodCliqueScalingGroup", {"min_endpoint": 2}, 2, 3),
        ("PodClique", {"min_endpoint": 4}, 4, 4),
        ("PodClique", {"min_endpoint": 0}, 0, 3),
        ("PodClique", {"decode_min_endpoint": 5}, 1, 5),
        ("Deployment", {}, 1, 1),
    ],
)
def test_a_pool_keeps_as_many_replicas_as_grove_starts_together(
    kind: str, settings: dict[str, Any], prefill: int, decode: int
) -> None:
    planned = graph(*DISAGG[:2], {**DISAGG[2], "minAvailable": 3})
    planned["status"] = {"components": {name: {"componentKind": kind} for name in ("P", "D")}}
    config = read_plan(planned, config_map({"mode": "disagg"} | settings), None).config
    limits = Limits(config)
    assert (limits.least(Pool.PREFILL), limits.least(Pool.DECODE)) == (prefill, decode)


def test_the_graphs_engine_is_selected_from_a_profile_of_several() -> None:
    several = {"prefill_isl": [[100, 1000]] * 3, "prefill_ttft": [[5, 15], [10, 30], [20, 60]], "tp": [[8], [4], [2]]}
    profile = {"metadata": {"name": "x"}, "data": {"prefill_raw_data.json": json.dumps(several)}}
    by_pods = read_plan(graph(*DISAGG), config_map({"mode": "disagg"}), profile)
    by_config = read_plan(graph(*DISAGG), config_map({"mode": "disagg", "prefill_engine_num_gpu": 8}), profile)
    assert [[point.ttft for point in plan.profile.prefill] for plan in (by_pods, by_config) if plan.profile] == [
        [20, 60],
        [5, 15],
    ]
    with pytest.raises(NotPlannable, match="the graph's prefill engines have 3"):
        read_plan(graph(*DISAGG), config_map({"mode": "disagg", "prefill_engine_num_gpu": 3}), profile)


def test_yaml_is_read_as_well() -> None:
    plan = read_plan(
        graph(component("W", "worker")), config_map("mode: agg\npolicy: reference\n", "planner_config.yaml"), None
    )
    assert plan.components == {Pool.DECODE: "W"}
    assert plan.profile is None


@pytest.mark.parametrize(
    ("obj", "settings", "reason", "says"),
    [
        (graph(*DISAGG), None, "NoPlannerConfig", "names ConfigMap planner-config-g, which does not exist"),
        (graph(*DISAGG), config_map({}, "other"), "InvalidPlannerConfig", "has no key planner_config.json"),
        (graph(*DISAGG), config_map("{"), "InvalidPlannerConfig", "ConfigMap planner-config-g, planner_config.json"),
        (graph(*DISAGG), config_map({"mode": "both"}), "InvalidPlannerConfig", "mode: 'both' is not allowed"),
        (graph(*DISAGG[:2]), config_map({}), "InvalidPlannerConfig", "needs one component of type decode"),
        (
            graph(*DISAGG),
            config_map({"load_adjustment_interval_seconds": 1e300, "enable_throughput_scaling": False}),
            "InvalidPlannerConfig",
            "load_adjustment_interval_seconds is too large: at most 9223372036854775807 is allowed",
        ),
        (
            graph(*DISAGG),
            config_map({"decode_engine_num_gpu": 10**7}),
            "InvalidPlannerConfig",
            "decode_engine_num_gpu is too large: at most 1000000 is allowed",
        ),
        (
            graph(*DISAGG, component("Own", "planner")),
            config_map({}),
            "TwoPlanners",
            "component Own is a planner, and annotation",
        ),
    ],
)
def test_a_graph_that_cannot_be_planned_reports_why(obj: Any, settings: Any, reason: str, says: str) -> None:
    with pytest.raises(NotPlannable) as refused:
        read_plan(obj, settings, None)
    assert refused.value.reason == reason
    assert says in str(refused.value)


def test_a_broken_profile_is_reported() -> None:
    profile = {"metadata": {"name": "x"}, "data": {"prefill_raw_data.json": "[]"}}
    with pytest.raises(NotPlannable) as refused:
        read_plan(graph(*DISAGG), config_map({}), profile)
    assert "prefill_raw_data.json" in str(refused.value)


TRACE = "\n".join(
    json.dumps({"timestamp": at * 1000, "input_length": 1000, "output_length": 100, "hash_ids": []})
    for at in range(0, 400, 2)
)


def test_a_warm_up_trace_is_a_key_of_the_same_config_map() -> None:
    value = {
        "load_predictor_warmup_trace": "/workspace/traces/warm.jsonl",
        "throughput_adjustment_interval_seconds": 100,
    }
    settings = config_map(value)
    with pytest.raises(NotPlannable, match=r"has no key warm\.jsonl"):
        read_plan(graph(*DISAGG), settings, None)
    settings["data"]["warm.jsonl"] = TRACE
    plan = read_plan(graph(*DISAGG), settings, None)
    assert len(plan.warmup) == 4
    settings["data"]["warm.jsonl"] = "no trace"
    with pytest.raises(NotPlannable, match=r"warm\.jsonl"):
        read_plan(graph(*DISAGG), settings, None)


@pytest.mark.parametrize("name", ["planner_config.yaml", "planner_config.json"])
@pytest.mark.parametrize(
    "text",
    [
        "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 20)),
        "mode: [" + "1, " * 300_000 + "1]",
        "mode: " + "x" * 100_000,
        "".join(f"k{n}: [" + "]\n" for n in range(4000)),
        "[" * 1_000_000,
        "!!timestamp x",
    ],
)
def test_a_yaml_bomb_is_rejected_with_a_short_message(name: str, text: str) -> None:
    config_map = {"metadata": {"name": "c", "namespace": "ns"}, "data": {name: text}}
    with pytest.raises(NotPlannable) as refused:
        read_plan({"metadata": {"name": "g", "namespace": "ns", "uid": "u"}, "spec": {}}, config_map, None)
    assert refused.value.reason == "InvalidPlannerConfig"
    assert len(str(refused.value)) < 4000


@pytest.mark.parametrize(
    ("shared", "namespace", "own"),
    [
        (False, "ns-g", True),
        (False, "other-g", False),
        (False, "dynamo", False),
        (True, "dynamo", True),
        (True, "other-g", False),
    ],
)
def test_a_plan_uses_the_graphs_own_dynamo_namespace(shared: bool, namespace: str, own: bool) -> None:
    config_map = {
        "metadata": {"name": "c", "namespace": "ns"},
        "data": {"planner_config.json": f'{{"namespace": "{namespace}"}}'},
    }
    graph = {
        "metadata": {"name": "g", "namespace": "ns", "uid": "u"},
        "spec": {"components": [{"name": "F", "type": "frontend", "globalDynamoNamespace": shared}]},
    }
    with pytest.raises(NotPlannable) as refused:
        read_plan(graph, config_map, None)
    assert ("the graph's namespace is" in str(refused.value)) is not own


CLAIMED = {"P": ReplicaGpus(2), "D": ReplicaGpus(4)}
WAITS = UncountedClaim("ResourceClaimTemplate", "all", NotCounted.ALL_OF_A_NODE)


def planned(counted: Mapping[str, ReplicaGpus], before: PlannedGraph | None = None, **config: Any) -> PlannedGraph:
    obj = graph(component("P", "prefill"), component("D", "decode", "0"))
    return read_plan(obj, config_map({"mode": "disagg", **config}), None, counted, before)


def refusal(counted: Mapping[str, ReplicaGpus], before: PlannedGraph | None = None) -> tuple[str, str]:
    with pytest.raises(NotPlannable) as refused:
        planned(counted, before)
    return refused.value.reason, str(refused.value)


def test_workers_that_claim_their_gpus_are_counted() -> None:
    assert planned(CLAIMED).gpus == {Pool.PREFILL: 2, Pool.DECODE: 4}
    obj = graph(component("P", "prefill"), component("D", "decode", "0"))
    assert read_plan(obj, config_map({"mode": "disagg"}), None).gpus == {Pool.PREFILL: 2, Pool.DECODE: None}


def test_replicas_that_share_their_gpus_are_not_planned() -> None:
    """More replicas would not bring more GPUs, so no number keeps a latency."""
    shared = CLAIMED | {"D": ReplicaGpus(0, {"four": 4})}
    reason, message = refusal(shared)
    assert reason == "SharedGpus"
    assert message == (
        "all replicas of D share 4 GPUs of ResourceClaim four: more replicas get no more GPUs. Name a ResourceClaimTemplate "
        "(resourceClaimTemplateName), from which each pod gets its own, or set decode_engine_num_gpu"
    )
    assert planned(shared, decode_engine_num_gpu=1).gpus[Pool.DECODE] == 1


def test_planning_waits_until_the_gpus_of_an_engine_are_known() -> None:
    unknown = CLAIMED | {"P": ReplicaGpus(0, {}, (WAITS,))}
    reason, message = refusal(unknown)
    assert (reason, message) == (
        "GpusUnknown",
        "GPUs of P are unknown: ResourceClaimTemplate all requests all devices of a node, and is not allocated yet; "
        "meanwhile, prefill_engine_num_gpu can set the number",
    )
    assert planned(unknown, prefill_engine_num_gpu=8).gpus[Pool.PREFILL] == 8
    # All pods are away for a while: their GPUs stay known.
    before = planned(CLAIMED)
    assert planned(unknown, before) == before


POWER = {"mode": "disagg", "enable_power_awareness": True, "total_gpu_power_limit": 6000}


def limited(name: str, type_: str, watts: str | None, gpus: str = "2") -> dict[str, Any]:
    made = component(name, type_, gpus)
    if watts is not None:
        made["podTemplate"]["metadata"] = {"annotations": {"dynamo.nvidia.com/gpu-power-limit": watts}}
    return made


def test_workers_draw_the_power_that_their_pods_state_for_each_gpu() -> None:
    several = limited("D", "decode", "300", "4") | {"multinode": {"nodeCount": 2}}
    plan = read_plan(graph(limited("P", "prefill", "500"), several), config_map(POWER), None)
    assert plan.watts == {Pool.PREFILL: 1000, Pool.DECODE: 2400}
    assert read_plan(graph(*DISAGG), config_map({"mode": "disagg"}), None).watts == {}
    lead = limited("", "", "700")["podTemplate"]
    roles = {"roles": [{"name": "leader", "podTemplate": lead}]}
    plan = read_plan(graph(limited("P", "prefill", "500"), several | roles), config_map(POWER), None)
    assert plan.watts[Pool.DECODE] == 6 * 700, "the highest of its templates"


@pytest.mark.parametrize(
    ("prefill", "fields", "reason", "words"),
    [
        (None, {}, "PowerUnknown", "gpu-power-limit in the podTemplate of P is missing; it must be the watts"),
        ("500W", {}, "PowerUnknown", "gpu-power-limit in the podTemplate of P is '500W'; it must be the watts"),
        ("0", {}, "PowerUnknown", "is '0'; it must be"),
        ("9999999", {}, "PowerUnknown", "is '9999999'; it must be"),
        (
            "500",
            {"total_gpu_power_limit": 1500},
            "InvalidPlannerConfig",
            "total_gpu_power_limit is 1500 W, and 1 prefill and 1 decode (min_endpoint) may draw 2200 W: raise total_gpu_power",
        ),
    ],
)
def test_power_that_cannot_be_planned_is_reported(prefill: str | None, fields: Any, reason: str, words: str) -> None:
    made = graph(limited("P", "prefill", prefill), limited("D", "decode", "300", "4"))
    with pytest.raises(NotPlannable, match=re.escape(words)) as refused:
        read_plan(made, config_map(POWER | fields), None)
    assert refused.value.reason == reason


def test_a_power_budget_needs_the_number_of_gpus() -> None:
    made = graph(limited("P", "prefill", "500", "0"), limited("D", "decode", "300", "4"))
    with pytest.raises(NotPlannable, match="set prefill_engine_num_gpu") as refused:
        read_plan(made, config_map(POWER), None)
    assert refused.value.reason == "PowerUnknown"
    plan = read_plan(made, config_map(POWER | {"prefill_engine_num_gpu": 3}), None)
    assert plan.watts[Pool.PREFILL] == 1500
