"""The traffic of a replay, from decisions."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dynamo_dynadmin.api.replay_models import PlannerChanges
from dynamo_dynadmin.api.traffic import MOST_REQUESTS, MOST_STEPS, TrafficStep, bounded, observed
from dynamo_shared.api.contracts.planner import PlannerConfig

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def decision(minute: float, rate: float | None, **more: Any) -> dict[str, Any]:
    inputs = {} if rate is None else {"requestsPerSecond": rate, "isl": 2000.0, "osl": 200.0}
    at = NOON + timedelta(minutes=minute)
    return {"time": at.isoformat(), "current": {"decode": 2}, **more, "inputs": {**inputs, **more.get("inputs", {})}}


def step(rate: float, seconds: float) -> TrafficStep:
    return TrafficStep(rate=rate, seconds=seconds, isl=2000, osl=200)


def test_what_a_decision_observed_holds_until_the_next_one() -> None:
    rows = [decision(0, 1), decision(2, 5), decision(3, None), decision(5, 2, current={"decode": 4})]
    result = observed(rows, 3600)
    assert result is not None
    assert result.steps == (step(1, 120), step(5, 180), step(2, 600))
    assert result.replicas == {"decode": 2}
    assert "from 2026-01-02 12:00:00Z to 2026-01-02 12:15:00Z" in result.remarks[0]


def test_the_time_that_is_read_back_begins_within_a_decision() -> None:
    rows = [decision(0, 1), decision(2, 5, current={"prefill": 3, "decode": 0})]
    result = observed(rows, 630)
    assert result is not None
    assert result.steps == (step(1, 30), step(5, 600))
    late = observed(rows, 60)
    assert late is not None
    assert (late.steps, late.replicas) == ((step(5, 60),), {"prefill": 3})


def test_the_newest_decision_holds_for_ten_minutes() -> None:
    result = observed([decision(0, 1)], 3600)
    assert result is not None
    assert result.steps == (step(1, 600),)


def test_unknown_lengths_are_those_of_the_others_or_assumed() -> None:
    unknown = decision(0, 1, inputs={"isl": 0.0, "osl": float("nan")})
    result = observed([unknown, decision(1, 1)], 3600)
    assert result is not None
    assert [(each.isl, each.osl) for each in result.steps] == [(2000, 200), (2000, 200)]
    alone = observed([unknown], 3600)
    assert alone is not None
    assert (alone.steps[0].isl, alone.steps[0].osl) == (3000, 300)
    assert "3000 input and 300 output tokens are assumed" in " ".join(alone.remarks)


@pytest.mark.parametrize("row", [{"time": "soon", "inputs": {"requestsPerSecond": 1}}, decision(0, None), {}])
def test_decisions_without_traffic_show_none(row: dict[str, Any]) -> None:
    assert observed([row], 3600) is None


def test_requests_are_bounded_and_the_oldest_are_left_out() -> None:
    kept = bounded([step(100, 500), step(50, 1000), step(10, 3000)])
    assert kept == [step(100, 200), step(50, 1000), step(10, 3000)]
    assert sum(each.requests for each in kept) == MOST_REQUESTS
    result = observed([decision(0, 1e9)], 3600)
    assert result is not None
    assert result.steps == (step(10_000, 10),)
    assert "100,000 requests at most" in result.remarks[-1]


@pytest.mark.parametrize(("decisions", "said"), [(MOST_STEPS, False), (MOST_STEPS + 1, True)])
def test_older_decisions_than_a_replay_has_steps_are_left_out_and_said_to_be(decisions: int, said: bool) -> None:
    result = observed([decision(minute / 60, 1) for minute in range(decisions)], 3600)
    assert result is not None
    assert len(result.steps) == MOST_STEPS
    words = f"only the last {MOST_STEPS - 1 + 600} s: a replay has the traffic of 500 decisions at most"
    assert (words in result.remarks) is said


def test_changes_are_keys_of_the_planner_configuration_with_its_defaults() -> None:
    known = PlannerConfig.model_fields
    for name, field in PlannerChanges.model_fields.items():
        assert field.default == known[name].default, name
