"""The same traffic with a configuration as it is and a changed one: the job of a worker process, and its rows."""

import json
from typing import Any

import pytest
from dynamo_planner.core.observation import Pool
from dynamo_planner.core.profile import Profile, ProfileError
from dynamo_planner.planning.plans import PlannedGraph
from dynamo_planner.replay.job import Replays
from dynamo_planner.replay.outcome import GraphSample
from dynamo_planner.replay.rows import changes, replay
from dynamo_planner.replay.whatif import InvalidChange, changed_config, job_of, written_config
from dynamo_shared.api.contracts.planner import PlannerConfig
from dynamo_shared.api.resources import ObjectKey

WRITTEN: dict[str, Any] = {
    "mode": "agg",
    "optimization_target": "sla",
    "ttft_ms": 300,
    "itl_ms": 20,
    "max_gpu_budget": 8,
    "throughput_adjustment_interval_seconds": 60,
}
STEPS = [(2.0, 120.0, 1000, 100), (30.0, 240.0, 1000, 100)]


def plan(profile: Profile | None = None, watts: int = 0, **config: Any) -> PlannedGraph:
    return PlannedGraph(
        graph=ObjectKey("team", "shop"),
        uid="u",
        config=PlannerConfig.model_validate({**WRITTEN, **config}),
        components={Pool.DECODE: "worker"},
        gpus={Pool.DECODE: 2},
        profile=profile,
        watts={Pool.DECODE: watts} if watts else {},
    )


def job(profile: Profile, *configs: dict[str, Any]) -> Replays:
    made = job_of(plan(), profile, configs, STEPS, startup=30, replicas={"decode": 3})
    # As it arrives in the process.
    sent = json.loads(json.dumps(made.job()))
    assert sent.pop("job") == "replays"
    return Replays(**sent)


def test_a_gpu_price_reduces_gpus(profile: Profile) -> None:
    current = plan().config
    changed, remarks = changed_config(current, {"gpu_price": 0.9})
    assert remarks == []
    said: list[str] = []
    rows = replay(job(profile, written_config(current), changed), lambda _, sentence: said.append(sentence))
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
    powered = plan(watts=1000, enable_power_awareness=True, total_gpu_power_limit=2000)
    configs = [written_config(plan().config), written_config(powered.config)]
    made = job_of(powered, profile, configs, STEPS, startup=30, replicas={"decode": 1})
    sent = json.loads(json.dumps(made.job()))
    del sent["job"]
    free, bounded = replay(Replays(**sent), lambda *_: None)
    assert max(each["ready"]["decode"] for each in free["replicas"]) > 2
    assert max(each["ready"]["decode"] for each in bounded["replicas"]) == 2


def test_each_run_is_judged_by_its_own_targets(profile: Profile) -> None:
    current = plan().config
    strict, _ = changed_config(current, {"itl_ms": 1})
    rows = replay(job(profile, written_config(current), strict), lambda *_: None)
    assert rows[1]["itlAttainment"] == 0.0
    assert rows[0]["itlAttainment"] > 0.5


def test_a_period_without_requests_gives_no_result(profile: Profile) -> None:
    made = job_of(plan(), profile, [WRITTEN], [(0.0, 60.0, 1000, 100)], startup=30, replicas={})
    assert replay(made, lambda *_: None) == ()


def test_an_invalid_change_is_named() -> None:
    with pytest.raises(InvalidChange) as refused:
        changed_config(plan(enable_load_scaling=True).config, {"load_adjustment_interval_seconds": 90})
    assert refused.value.field == "load_adjustment_interval_seconds"
    _, remarks = changed_config(plan(gpu_price=0.5).config, {"attainment": 0.9})
    assert remarks == ["attainment ignored with gpu_price, which weighs requests against GPUs; leave one of them out"]


def test_a_profile_of_one_role_is_not_sufficient(profile: Profile) -> None:
    with pytest.raises(ProfileError):
        job_of(plan(), Profile(prefill=profile.prefill), [WRITTEN], STEPS, startup=30, replicas={})


def test_only_times_with_changed_replicas_are_kept() -> None:
    def sample(number: int, ready: int) -> GraphSample:
        counts = {Pool.DECODE: ready}
        return GraphSample(at=5.0 * number, rate=1, ready=counts, target=counts, gpus=ready)

    kept = changes([sample(number, ready) for number, ready in enumerate([1, 1, 2, 2, 2, 1, 1])])
    assert [(each.at, each.gpus) for each in kept] == [(0, 1), (10, 2), (25, 1), (30, 1)]
    busy = changes([sample(number, number % 2) for number in range(5000)])
    assert len(busy) <= 401
    assert busy[-1].at == 5.0 * 4999
