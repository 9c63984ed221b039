"""The same traffic with a configuration as it is and a changed one: the job of a worker process, and its rows."""

import json
from typing import Any

import pytest
from dynamo_planner.core.limits import Limits
from dynamo_planner.core.observation import Pool
from dynamo_planner.core.profile import Profile, ProfileError
from dynamo_planner.planning.plans import PlannedGraph, read_plan
from dynamo_planner.replay.job import Replays
from dynamo_planner.replay.outcome import GraphSample
from dynamo_planner.replay.rows import changes, replay, simulated
from dynamo_planner.replay.whatif import InvalidChange, changed_plan, job_of
from dynamo_shared.api.contracts.planner import PlannerConfig
from dynamo_shared.api.objects import KubeObject

WRITTEN: dict[str, Any] = {
    "mode": "agg",
    "optimization_target": "sla",
    "ttft_ms": 300,
    "itl_ms": 20,
    "max_gpu_budget": 8,
    "throughput_adjustment_interval_seconds": 60,
}
STEPS = [(2.0, 120.0, 1000, 100), (30.0, 240.0, 1000, 100)]


CONFIG_MAP = {"metadata": {"name": "c", "namespace": "team"}}
TRACE = "\n".join(json.dumps({"timestamp": 1000 * at, "input_length": 9, "output_length": 9}) for at in range(60))


def config_map(**config: Any) -> KubeObject:
    return {**CONFIG_MAP, "data": {"planner_config.yaml": json.dumps({**WRITTEN, **config}), "trace": TRACE}}


def graph(watts: int = 0, least: int = 0, gpus: int = 2) -> KubeObject:
    template = {
        "metadata": {"annotations": {"dynamo.nvidia.com/gpu-power-limit": str(watts)}} if watts else {},
        "spec": {
            "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}}]
        },
    }
    worker = {"name": "worker", "type": "worker", "podTemplate": template}
    grove = {"components": {"worker": {"componentKind": "PodClique"}}}
    return {
        "metadata": {"name": "shop", "namespace": "team", "uid": "u"},
        "spec": {"components": [{**worker, "minAvailable": least} if least else worker]},
        "status": grove if least else {},
    }


def plans(changes: dict[str, Any], made: KubeObject | None = None, **config: Any) -> list[PlannedGraph]:
    """The plan as it is, and the changed one."""
    made, written = made or graph(), config_map(**config)
    return [read_plan(made, written, None), changed_plan(made, written, None, changes)[0]]


def job(profile: Profile, made: list[PlannedGraph], replicas: int = 3) -> Replays:
    sent = json.loads(json.dumps(job_of(made, profile, STEPS, startup=30, replicas={"decode": replicas}).job()))
    # As it arrives in the process.
    assert sent.pop("job") == "replays"
    return Replays(**sent)


def test_a_gpu_price_reduces_gpus(profile: Profile) -> None:
    said: list[str] = []
    rows = replay(job(profile, plans({"gpu_price": 0.9})), lambda _, sentence: said.append(sentence))
    first, second = rows
    assert first["requests"] == second["requests"] > 5000
    assert first["replicas"][0] == {"at": 0.0, "ready": {"decode": 3}, "gpus": 6}, (
        "the replicas that were there, of two GPUs"
    )
    assert second["gpuHours"] <= first["gpuHours"]
    assert 0 <= first["attainment"] <= 1
    assert 0 < first["ttftMean"] <= first["ttftP99"]
    assert 0 < first["itlMean"] <= first["itlP99"]
    assert len(said) == 2
    assert json.dumps(rows, allow_nan=False)


def test_replays_keep_the_power_budget(profile: Profile) -> None:
    powered = {"enable_power_awareness": True, "total_gpu_power_limit": 2000}
    bounded, free = replay(
        job(profile, plans({"enable_power_awareness": False}, graph(watts=500), **powered), replicas=1), lambda *_: None
    )
    assert max(each["ready"]["decode"] for each in free["replicas"]) > 2
    assert max(each["ready"]["decode"] for each in bounded["replicas"]) == 2


@pytest.mark.parametrize(("gpus", "expected"), [(2, 1), (0, 5)])
def test_no_budget_limits_engines_of_unknown_size(profile: Profile, gpus: int, expected: int) -> None:
    """As in the planner: only the GPU-hours of a replay need a number, and assume one GPU."""
    made = plans({}, graph(gpus=gpus), max_gpu_budget=3)[0]
    able = simulated(made.config, job(profile, [made])).capabilities()
    assert Limits(made.config).bounded({Pool.DECODE: 5}, able) == {Pool.DECODE: expected}


def test_each_run_is_judged_by_its_own_targets(profile: Profile) -> None:
    rows = replay(job(profile, plans({"itl_ms": 1})), lambda *_: None)
    assert rows[1]["itlAttainment"] == 0.0
    assert rows[0]["itlAttainment"] > 0.5


def test_a_period_without_requests_gives_no_result(profile: Profile) -> None:
    made = job_of(plans({}), profile, [(0.0, 60.0, 1000, 100)], startup=30, replicas={})
    assert replay(made, lambda *_: None) == ()


@pytest.mark.parametrize(("written", "changed", "expected"), [(1, 5, 5), (5, 1, 3), (1, 2, 3)])
def test_a_gang_limits_a_changed_minimum_as_in_the_planner(
    profile: Profile, written: int, changed: int, expected: int
) -> None:
    made = plans({"min_endpoint": changed}, graph(least=3), min_endpoint=written)
    _, config = job(profile, made).configs
    assert PlannerConfig.model_validate(config).least_replicas("decode") == expected


def test_predictors_learn_from_intervals_of_the_changed_length(profile: Profile) -> None:
    made = plans({"throughput_adjustment_interval_seconds": 10}, load_predictor_warmup_trace="trace")
    assert [[count for count, *_ in each] for each in job(profile, made).warmups] == [[60], [10] * 6]


def test_an_invalid_change_is_named() -> None:
    with pytest.raises(InvalidChange) as refused:
        plans({"load_adjustment_interval_seconds": 90}, enable_load_scaling=True)
    assert refused.value.field == "load_adjustment_interval_seconds"
    _, remarks = changed_plan(graph(), config_map(gpu_price=0.5), None, {"attainment": 0.9})
    assert remarks == ["attainment ignored with gpu_price, which weighs requests against GPUs; leave one of them out"]


def test_a_profile_of_one_role_is_not_sufficient(profile: Profile) -> None:
    with pytest.raises(ProfileError):
        job_of(plans({}), Profile(prefill=profile.prefill), STEPS, startup=30, replicas={})


def test_only_times_with_changed_replicas_or_gpus_are_kept() -> None:
    def sample(number: int, ready: int, starting: int = 0) -> GraphSample:
        counts = {Pool.DECODE: ready}
        return GraphSample(at=5.0 * number, rate=1, ready=counts, target=counts, gpus=ready + starting)

    kept = changes([sample(number, ready) for number, ready in enumerate([1, 1, 2, 2, 2, 1, 1])])
    assert [(each.at, each.gpus) for each in kept] == [(0, 1), (10, 2), (25, 1), (30, 1)]
    begun = changes([sample(0, 1), sample(1, 1, 1), sample(2, 1, 1), sample(3, 2), sample(4, 2)])
    assert [(each.at, each.gpus) for each in begun] == [(0, 1), (5, 2), (15, 2), (20, 2)], "a start takes GPUs at once"
    busy = changes([sample(number, number % 2) for number in range(5000)])
    assert len(busy) <= 401
    assert busy[-1].at == 5.0 * 4999
