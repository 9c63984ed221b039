"""Traffic before planning began: a restarted planner forgets neither bursts nor waves, and adds no reserve."""

from collections.abc import Callable
from dataclasses import replace
from math import cos, pi
from typing import Any

import pytest
from dynamo_planner.core.adaptive import AdaptivePolicy
from dynamo_planner.core.adaptive.forecast import MEMORY
from dynamo_planner.core.adaptive.policy import HISTORY_SECONDS
from dynamo_planner.core.decision import Effects
from dynamo_planner.core.observation import Missing, PastTraffic, Pool, Traffic
from dynamo_planner.core.warmup import Interval

from tests.unit.planner.adaptive.test_policy import BOTH, PROFILE, Follower, config

MINUTE = 60.0


def past(rate: Callable[[float], float], seconds: float = HISTORY_SECONDS) -> tuple[PastTraffic, ...]:
    """Minutes of a rate, by seconds before planning began."""
    return tuple(
        PastTraffic(ago=ago, traffic=Traffic(duration=MINUTE, requests=MINUTE * rate(ago), isl=3000, osl=200))
        for ago in (seconds - MINUTE * minute for minute in range(1, int(seconds / MINUTE) + 1))
    )


def begun(rate: float, seconds: float, replicas: dict[Pool, int], **first: Any) -> tuple[Follower, Effects]:
    """A graph whose planning began with the first step, on a clock that has run for long."""
    graph = Follower(AdaptivePolicy(config(), profile=PROFILE), replicas, startup=120.0)
    graph.tick = replace(graph.tick, at=1_000_000.0)
    graph.step(rate, **first)
    return graph, graph.run(rate, seconds)


def test_two_hours_without_a_burst_need_no_reserve_for_one() -> None:
    new, _ = begun(20, 200, BOTH)
    known, effects = begun(20, 200, BOTH, past=past(lambda _: 20))
    assert sum(known.replicas.values()) < sum(new.replicas.values())
    assert "warm reserve" not in effects.explanation.message


def test_replicas_stay_for_the_next_burst() -> None:
    enough = {Pool.PREFILL: 6, Pool.DECODE: 6}
    new, _ = begun(4, 1200, enough)
    known, _ = begun(4, 1200, enough, past=past(lambda ago: 40 if ago % 900 < 120 else 4))
    assert sum(known.replicas.values()) > sum(new.replicas.values())


def test_a_wave_is_recognized_at_once() -> None:
    _, effects = begun(5, 30, BOTH, past=past(lambda ago: 25 - 20 * cos(2 * pi * ago / 1800)))
    assert "(wave)" in effects.explanation.message


@pytest.mark.parametrize(
    ("times", "missed", "kept"),
    [
        ({"ttft": 900.0, "itl": 8.0}, range(30), 0.5),
        ({"ttft": 100.0, "itl": 30.0}, range(30), 0.5),
        ({"ttft": 100.0, "itl": 8.0}, range(30), 1.0),
        # A minute an hour ago, and a minute without times.
        ({"ttft": 900.0, "itl": 8.0}, range(60, 120), 1.0),
        ({}, range(120), 1.0),
    ],
)
def test_requests_missed_in_the_last_hour_are_made_up_for(times: dict[str, Any], missed: range, kept: float) -> None:
    in_time: dict[str, Any] = {"ttft": 100.0, "itl": 8.0}
    minutes = [
        replace(each, traffic=replace(each.traffic, **(times if each.ago / MINUTE in missed else in_time)))
        for each in past(lambda _: 20)
    ]
    graph, effects = begun(20, 10, {Pool.PREFILL: 6, Pool.DECODE: 6}, past=tuple(minutes))
    assert effects.explanation.predictions["attainment_of_last_hour"] == pytest.approx(kept, abs=0.02)
    new = AdaptivePolicy(config(), profile=PROFILE)
    assert (graph.policy._promise.aim > new._promise.aim) is (kept < 1)


def test_the_past_is_requested_until_traffic_is_known_and_never_again() -> None:
    graph = Follower(AdaptivePolicy(config(), profile=PROFILE), BOTH)
    assert graph.tick.past_window == HISTORY_SECONDS
    graph.step(None, missing={"traffic": Missing.UNREACHABLE})
    assert graph.tick.past_window == HISTORY_SECONDS
    graph.step(20)
    assert graph.tick.past_window is None


def test_the_past_is_requested_until_planning_begins() -> None:
    """Traffic before a tick at which no plan was possible is older when planning begins."""
    graph = Follower(AdaptivePolicy(config(), profile=PROFILE), BOTH)
    bursts = past(lambda ago: 40 if ago < 600 else 4)
    graph.step(4, workers={}, missing={"workers": Missing.UNREACHABLE}, past=bursts)
    assert graph.tick.past_window == HISTORY_SECONDS
    graph.step(4, past=past(lambda _: 4))
    assert graph.tick.past_window is None
    assert max(each.rate for each in graph.policy._demand.samples) == pytest.approx(4)


@pytest.mark.parametrize("clock", [0.0, 1_000_000.0])
def test_a_trace_replaces_an_unknown_past(clock: float) -> None:
    warmup = [Interval(requests=20 * 60, isl=3000, osl=200)] * 120
    sizes = []
    for trace in (warmup, ()):
        graph = Follower(AdaptivePolicy(config(), profile=PROFILE, warmup=trace), BOTH, startup=120.0)
        graph.tick = replace(graph.tick, at=clock + graph.tick.at)
        graph.run(20, 200)
        sizes.append(sum(graph.replicas.values()))
    assert sizes[0] < sizes[1]


def test_the_newest_part_of_a_long_trace_is_used() -> None:
    trace = [Interval(requests=index, isl=3000, osl=200) for index in range(2 * MEMORY)]
    known = AdaptivePolicy(config(), profile=PROFILE, warmup=trace)._past
    assert (len(known), known[0].traffic.requests, known[-1].ago) == (MEMORY, MEMORY, 0.0)


def test_a_past_without_requests_gives_no_load() -> None:
    new, _ = begun(20, 1200, BOTH)
    known, _ = begun(20, 1200, BOTH, past=past(lambda _: 0))
    assert known.replicas == new.replicas
