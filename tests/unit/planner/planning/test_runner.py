"""Planning of one graph with a manual clock: when the policy runs, its effects, and its failures."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat
from math import inf
from typing import Any

import pytest
from dynamo_planner.core.decision import Decision, Effects, Explanation, Tick
from dynamo_planner.core.observation import (
    EngineCapabilities,
    EngineWork,
    ForwardPass,
    Missing,
    Observation,
    Pool,
    PoolCounts,
    Traffic,
)
from dynamo_planner.core.reference import ReferencePolicy
from dynamo_planner.planning.backoff import LONGEST, Acted, PlanBackoff
from dynamo_planner.planning.collector import CollectedInputs
from dynamo_planner.planning.controller import _figures
from dynamo_planner.planning.plans import PlannedGraph
from dynamo_planner.planning.reporter import missing_inputs, outcome_of, plan_data
from dynamo_planner.planning.runner import FAULT_PAUSE, Runner, TickResult, changes
from dynamo_planner.planning.scaling import ScaleSender
from dynamo_shared.api.contracts.planner import PlannerConfig
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.bus.commands import CommandSender
from dynamo_shared.bus.errors import BusDeniedError, BusError, BusUnavailableError, StreamFullError

from tests.building.memory_bus import MemoryBus

READY = {Pool.PREFILL: PoolCounts(ready=1, expected=1), Pool.DECODE: PoolCounts(ready=2, expected=2)}


class Stop(BaseException):
    """Ends a runner that would run without end."""


def plan(**config: Any) -> PlannedGraph:
    return PlannedGraph(
        graph=ObjectKey("ns", "g"),
        uid="u",
        config=PlannerConfig.model_validate(config),
        components={Pool.PREFILL: "P", Pool.DECODE: "D"},
        gpus={},
        profile=None,
    )


class Scripted:
    """A policy that returns these decisions in turn, every ten seconds; an exception is raised."""

    def __init__(self, *answers: Decision | Exception | None) -> None:
        self.answers = list(answers)

    def first_tick(self, now: float) -> Tick:
        return Tick(at=now + 10)

    def on_tick(self, tick: Tick, observation: Observation) -> Effects:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Effects(next_tick=Tick(at=tick.at + 10), decision=answer, explanation=Explanation(message="because"))


class World:
    """Simulated time, inputs and scaler; it ends after that many ticks."""

    def __init__(self, ticks: int) -> None:
        self.now, self.ticks = 100.0, ticks
        self.asked: list[tuple[float, dict[Pool, int]]] = []
        self.ticked: list[TickResult] = []
        self.slept: list[float] = []
        self.failures: list[str] = []
        self.withdrawn: list[float] = []
        self.heard: Iterator[bool] = iter(())
        """whether the scaler hears of what is withdrawn, in turn; then it does"""
        self.answers: Iterator[Acted] = iter(())
        """what the scaler says, in turn; then it does what it is asked"""

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    async def observe(self, tick: Tick, now: float) -> CollectedInputs:
        return CollectedInputs(Observation(now=now, workers=READY), {})

    async def act(self, decision: Decision) -> Acted:
        self.asked.append((self.now, dict(decision.replicas)))
        return next(self.answers, Acted("id", "done", done=True))

    async def withdraw(self) -> bool:
        self.withdrawn.append(self.now)
        return next(self.heard, True)

    async def report(self, ticked: TickResult) -> None:
        self.ticked.append(ticked)
        if len(self.ticked) == self.ticks:
            raise Stop

    async def failed(self, error: Exception) -> None:
        self.failures.append(repr(error))


async def fly(world: World, *policies: Scripted, **config: Any) -> None:
    made = iter(policies)

    async def make() -> Scripted:
        return next(made)

    runner = Runner(
        plan(**config),
        make=make,
        observe=world.observe,
        act=world.act,
        withdraw=world.withdraw,
        report=world.report,
        failed=world.failed,
        clock=world.clock,
        backoff=PlanBackoff(world.clock, randomness=lambda: 1.0),
        sleep=world.sleep,
    )
    with pytest.raises(Stop):
        await runner.run()


def more(**replicas: int) -> Decision:
    return Decision(replicas={Pool(name): count for name, count in replicas.items()}, reason="scale_up")


async def test_a_decision_is_sent_when_it_is_due() -> None:
    world = World(3)
    await fly(world, Scripted(None, more(prefill=2), more(prefill=1, decode=2)))
    # The third decision equals the current replicas.
    assert world.asked == [(120.0, {Pool.PREFILL: 2})]
    assert [ticked.acted is not None for ticked in world.ticked] == [False, True, False]


@pytest.mark.parametrize(
    ("policy", "withdrawn"),
    [
        pytest.param("adaptive", [110.0, 130.0], id="each tick decides about all"),
        pytest.param("reference", [140.0], id="a tick without decision was for something else"),
    ],
)
async def test_a_request_that_is_no_longer_desired_is_withdrawn_once(policy: str, withdrawn: list[float]) -> None:
    """The scaler may hold it, even from a former planner, and carried it out minutes later."""
    world = World(5)
    same = more(prefill=1, decode=2)
    await fly(world, Scripted(None, more(prefill=2), None, same, same), policy=policy)
    assert world.withdrawn == withdrawn


async def test_a_failed_withdrawal_is_retried() -> None:
    """NATS was away for a moment, and the scaler carried out an unwanted request minutes later."""
    world = World(3)
    world.heard = iter((False,))
    await fly(world, Scripted(None, None, None), policy="adaptive")
    assert world.withdrawn == [110.0, 120.0]


REFUSED = Acted("id", "NotManaged: not here", done=False, reason="NotManaged")
HELD = Acted("id", "Held: not yet", done=True, reason="Held")
AWAY = Acted("id", "no servers", done=False, answered=False, unsent=True)


@pytest.mark.parametrize("answer", [REFUSED, HELD, REFUSED._replace(answered=False)], ids=["refused", "held", "silent"])
async def test_a_request_that_is_not_carried_out_is_repeated_less_and_less_often(answer: Acted) -> None:
    """Each sample repeated it while it was rejected: thousands of graphs at a budget kept the scaler busy."""
    world = World(100)
    world.answers = repeat(answer)
    await fly(world, Scripted(*repeat(more(prefill=2), 100)))
    asked = [at - 100 for at, _ in world.asked]
    assert asked == [10, 30, 70, 150, 310, 310 + LONGEST, 310 + 2 * LONGEST]
    assert [ticked.acted for ticked in world.ticked[:4]] == [
        answer,
        answer._replace(repeated=True),
        answer,
        answer._replace(repeated=True),
    ]


async def test_another_plan_is_sent_at_once_but_not_if_predictions_alternate() -> None:
    world = World(7)
    world.answers = repeat(REFUSED)
    two, three, none = more(prefill=2), more(prefill=3), more(prefill=0)
    await fly(world, Scripted(two, three, two, three, two, none, three))
    # The last one is the opposite of the former request, which the scaler may remember.
    assert [(at, replicas[Pool.PREFILL]) for at, replicas in world.asked] == [
        *((110, 2), (120, 3), (130, 2), (140, 3)),
        *((160, 0), (170, 3)),
    ]


@pytest.mark.parametrize("answer", [HELD, REFUSED._replace(answered=False)], ids=["held", "silent"])
async def test_an_earlier_plan_is_sent_again_because_the_scaler_holds_the_newest(answer: Acted) -> None:
    """The scaler carried out the last plan that it received, while the former one was desired again."""
    world = World(4)
    world.answers = repeat(answer)
    two, three = more(prefill=2), more(prefill=3)
    await fly(world, Scripted(two, three, two, two))
    assert [(at, replicas[Pool.PREFILL]) for at, replicas in world.asked] == [(110, 2), (120, 3), (130, 2)]


async def test_a_rejected_plan_replaces_the_one_that_the_scaler_held() -> None:
    """The held plan is sent again at once, although its repetition was due later."""
    world = World(5)
    world.answers = iter([HELD, HELD, REFUSED, HELD])
    two, three = more(prefill=2), more(prefill=3)
    await fly(world, Scripted(two, two, two, three, two))
    assert [replicas[Pool.PREFILL] for _, replicas in world.asked] == [2, 2, 3, 2]


async def test_an_applied_or_withdrawn_plan_counts_as_new_when_it_returns() -> None:
    world = World(9)
    world.answers = iter((*repeat(REFUSED, 4), Acted("id", "Applied", done=True), REFUSED))
    two = more(prefill=2)
    await fly(world, Scripted(two, two, two, None, two, two, two, more(prefill=3), two))
    assert [at for at, _ in world.asked] == [110, 130, 150, 170, 180, 190]
    assert [ticked.acted for ticked in world.ticked][3] is None


async def test_a_tick_of_the_reference_for_something_else_does_not_end_a_rejection() -> None:
    world = World(4)
    world.answers = repeat(REFUSED)
    await fly(world, Scripted(more(prefill=2), None, None, None), policy="reference")
    repeated = REFUSED._replace(repeated=True)
    assert [ticked.acted for ticked in world.ticked] == [REFUSED, repeated, None, None]


async def test_the_next_tick_sends_the_request_when_nats_is_back() -> None:
    world = World(3)
    world.answers = repeat(AWAY, 2)
    await fly(world, Scripted(*repeat(more(prefill=2), 3)))
    assert [at for at, _ in world.asked] == [110, 120, 130]


async def test_advice_is_reported_and_not_carried_out() -> None:
    world = World(1)
    await fly(world, Scripted(more(prefill=5)), advisory=True)
    assert world.asked == []
    assert world.ticked[0].effects.decision == more(prefill=5)


async def test_a_failing_policy_is_recreated_after_a_while() -> None:
    world = World(1)
    await fly(world, Scripted(ZeroDivisionError()), Scripted(more(decode=3)))
    assert (world.failures, FAULT_PAUSE in world.slept) == (["ZeroDivisionError()"], True)
    assert [asked for _, asked in world.asked] == [{Pool.DECODE: 3}]


async def test_requests_held_by_the_scaler_are_withdrawn_when_a_policy_has_failed() -> None:
    """The condition says that replicas stay as they are, but they changed minutes later."""
    world = World(2)
    await fly(world, Scripted(more(prefill=2), ZeroDivisionError()), Scripted(None))
    assert world.withdrawn == [120.0]


@pytest.mark.parametrize(
    ("error", "unsent"),
    [
        (BusUnavailableError("no servers"), True),
        (BusDeniedError("may not publish on dynamo.cmd"), False),
        (StreamFullError("maximum messages exceeded"), False),
    ],
)
async def test_an_unreachable_scaler_is_reported_as_the_answer(
    error: BusError, unsent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise error

    bus = MemoryBus()
    monkeypatch.setattr(bus, "publish", refuse)
    sender = ScaleSender(CommandSender(bus, "c"), plan(), "now")
    acted = await sender(more(decode=3))
    said = f"the request did not reach the scaler: {error}"
    assert acted == Acted(acted.command, said, done=False, answered=False, unsent=unsent)
    assert not await sender.withdraw()


async def test_a_scaler_that_does_not_answer_has_not_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynamo_planner.planning.scaling.ANSWER_WITHIN", 0.0)
    acted = await ScaleSender(CommandSender(MemoryBus(), "c"), plan(), "now")(more(decode=3))
    assert acted == Acted(acted.command, "the scaler has not answered yet", done=False, answered=False)


@pytest.mark.parametrize(
    ("counts", "asks"),
    [
        (PoolCounts(ready=1, expected=2), False),
        (PoolCounts(ready=2, expected=1), True),
        (PoolCounts(ready=2, expected=None), False),
        (PoolCounts(ready=1, expected=None), True),
    ],
)
def test_a_request_that_equals_the_desired_replicas_is_not_sent_again(counts: PoolCounts, asks: bool) -> None:
    assert changes(more(prefill=2), Observation(now=0, workers={Pool.PREFILL: counts})) is asks


def collected(**troubles: str) -> CollectedInputs:
    traffic = None if "traffic" in troubles else Traffic(duration=10, requests=50, isl=1000, osl=100)
    missing = dict.fromkeys(troubles, Missing.UNREACHABLE)
    return CollectedInputs(Observation(now=0, traffic=traffic, workers=READY, missing=missing), troubles)


def at_zero(**troubles: str) -> CollectedInputs:
    """The observation of a graph without replicas that should have none."""
    known = collected(**troubles)
    none = dict.fromkeys(READY, PoolCounts(ready=0, expected=0))
    return replace(known, observation=replace(known.observation, workers=none))


def effects(decision: Decision | None = None) -> Effects:
    return Effects(next_tick=Tick(at=1), decision=decision, explanation=Explanation(message="said"))


def at_risk() -> Effects:
    return Effects(next_tick=Tick(at=1), explanation=Explanation(message="said; too few GPUs", at_risk="too few GPUs"))


def unready() -> Effects:
    said = Explanation(message="too little is known of the prefill engines", needs_passes=True)
    return Effects(next_tick=Tick(at=1), explanation=said)


REACTIVE = {
    "policy": "reference",
    "optimization_target": "load",
    "decode_scale_up_kv_rate": 80,
    "decode_scale_down_kv_rate": 40,
    "mode": "agg",
}
LARGE = {"prefill_engine_num_gpu": 8, "decode_engine_num_gpu": 8}
"""Engines that the default budget of 8 GPUs does not hold together."""
MORE = more(prefill=2)


def ticked(result: Effects | None = None, acted: Acted | None = None, **troubles: str) -> TickResult:
    return TickResult(collected(**troubles), result or effects(), acted)


@pytest.mark.parametrize(
    ("config", "result", "status", "reason"),
    [
        ({}, ticked(), True, "Holds"),
        ({}, ticked(effects(MORE), Acted("i", "", done=True)), True, "Planned"),
        ({}, ticked(effects(MORE), Acted("i", "NotFound", done=False)), False, "ScalerRefused"),
        ({}, ticked(effects(MORE), Acted("i", "not yet", done=False, answered=False)), False, "ScalerUnanswered"),
        ({}, ticked(at_risk()), True, "PromiseAtRisk"),
        (LARGE, ticked(effects(more(prefill=0, decode=0)), Acted("i", "", done=True)), True, "PromiseAtRisk"),
        (LARGE, ticked(), True, "PromiseAtRisk"),
        (LARGE | {"max_gpu_budget": 16}, ticked(), True, "Holds"),
        (LARGE | {"min_gpu_budget": 32, "max_gpu_budget": -1}, ticked(), True, "Holds"),
        ({}, ticked(traffic="no Prometheus"), False, "InputMissing"),
        (REACTIVE, ticked(traffic="no Prometheus"), True, "Holds"),
        ({}, ticked(forward_passes="no NATS"), True, "Holds"),
        ({}, ticked(unready(), forward_passes="no NATS"), False, "InputMissing"),
        ({}, ticked(unready()), True, "Holds"),
        (REACTIVE, ticked(forward_passes="no NATS"), False, "InputMissing"),
        (REACTIVE, TickResult(at_zero(forward_passes="no engine"), effects(), None), True, "Holds"),
        ({}, TickResult(at_zero(forward_passes="no engine"), unready(), None), False, "InputMissing"),
    ],
)
def test_the_condition_reports_the_result_of_a_tick(
    config: dict[str, Any], result: TickResult, status: bool, reason: str
) -> None:
    outcome = outcome_of(plan(**config), result)
    assert (outcome.status, outcome.reason) == (status, reason)


def test_only_inputs_that_planning_needs_are_reported_as_missing() -> None:
    troubled = TickResult(collected(forward_passes="no NATS"), effects(), None)
    assert missing_inputs(plan(), troubled) == {}
    assert missing_inputs(plan(**REACTIVE), troubled) == {"forward_passes": Missing.UNREACHABLE}


def test_missing_engine_reports_are_not_mentioned_without_engines() -> None:
    outcome = outcome_of(plan(), TickResult(at_zero(forward_passes="no engine"), effects(), None))
    assert outcome.message == "said"


def test_the_condition_reports_that_a_budget_holds_no_engine() -> None:
    outcome = outcome_of(plan(**LARGE), TickResult(collected(), effects(more(prefill=0, decode=0)), None))
    assert outcome.message == (
        "said; max_gpu_budget is 8, and 1 prefill and 1 decode (min_endpoint) need 16 GPUs: all pools scale to 0"
    )


@pytest.mark.parametrize(
    ("config", "ticked", "message"),
    [
        ({}, TickResult(collected(traffic="no Prometheus"), effects(), None), "said; traffic: no Prometheus"),
        (
            {},
            TickResult(collected(forward_passes="no NATS"), effects(), None),
            "said; planned from traffic only: no NATS",
        ),
        (
            REACTIVE,
            TickResult(collected(traffic="no Prometheus"), effects(), None),
            "said; planned from the engines' reports only: no Prometheus",
        ),
    ],
)
def test_the_condition_names_missing_inputs(config: dict[str, Any], ticked: TickResult, message: str) -> None:
    assert outcome_of(plan(**config), ticked).message == message


def test_a_tick_without_a_sentence_is_reported_with_the_reason_of_what_ran() -> None:
    """The condition of a graph that only reacts was `disabled`, which is the reason of predictive scaling."""
    policy = ReferencePolicy(PlannerConfig.model_validate(REACTIVE))
    able = dict.fromkeys(READY, EngineCapabilities(max_kv_tokens=1000))
    busy = EngineWork(num_decode_requests=1, sum_decode_kv_tokens=500)
    passes = tuple(ForwardPass(pool=Pool.DECODE, worker_id=name, wall_time=0.01, scheduled=busy) for name in ("a", "b"))
    observation = Observation(now=5.0, workers=READY, forward_passes=passes, capabilities=able)
    ticked = TickResult(CollectedInputs(observation, {}), policy.on_tick(policy.first_tick(0.0), observation), None)
    planned = plan(**REACTIVE)
    outcome = outcome_of(planned, ticked)
    assert (outcome.message, plan_data(planned, ticked, outcome).reason) == ("no_change", "no_change")


def test_missing_engine_reports_are_the_reason_if_engines_are_otherwise_unknown() -> None:
    outcome = outcome_of(plan(), TickResult(collected(forward_passes="no NATS"), unready(), None))
    assert outcome.message == "too little is known of the prefill engines; forward_passes: no NATS"


def test_the_event_has_the_inputs_the_desired_replicas_and_what_is_missing() -> None:
    ticked = TickResult(collected(forward_passes="no NATS"), effects(more(prefill=2)), Acted("id", "", done=True))
    data = plan_data(plan(), ticked, outcome_of(plan(), ticked))
    assert data.inputs == {"requestsPerSecond": 5.0, "isl": 1000, "osl": 100}
    assert (data.replicas, data.current) == ({"prefill": 2}, {"prefill": 1, "decode": 2})
    assert (data.missing, data.command) == ({"forward_passes": "unreachable"}, "id")


def test_the_event_has_no_infinite_number() -> None:
    known = collected()
    endless = replace(
        known, observation=replace(known.observation, traffic=Traffic(duration=1, requests=inf, isl=1, osl=2))
    )
    ticked = TickResult(endless, effects(), None)
    assert plan_data(plan(), ticked, outcome_of(plan(), ticked)).inputs == {"isl": 1, "osl": 2}


@pytest.mark.parametrize(
    ("policy", "desired"), [("adaptive", {"prefill": 1, "decode": 3}), ("reference", {"decode": 3})]
)
def test_pools_that_adaptive_leaves_alone_have_their_desired_replicas(policy: str, desired: dict[str, int]) -> None:
    """The metric had the replicas of the last decision, also after another client had changed them."""
    figures = _figures(plan(policy=policy), TickResult(collected(), effects(more(decode=3)), None))
    assert {each: figures.get(f"desired.{each}") for each in desired} == desired
    assert sum(name.startswith("desired.") for name in figures) == len(desired)


def test_the_event_has_the_alternatives_of_a_pool_and_why_they_were_not_chosen() -> None:
    option = {"pool": "decode", "replicas": 3, "share_within_target": 0.97, "not_taken": "the GPU budget"}
    explained = effects(more(decode=2))
    explanation = replace(explained.explanation, alternatives=(option,))
    ticked = TickResult(collected(), replace(explained, explanation=explanation), None)
    result = plan_data(plan(), ticked, outcome_of(plan(), ticked)).alternatives
    assert [(each.replicas, each.figures, each.reason) for each in result] == [
        ({"decode": 3}, {"share_within_target": 0.97}, "the GPU budget")
    ]
