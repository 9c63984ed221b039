"""Commands that take time: cooldowns, steps, and intents that are held until they are allowed."""

import copy
import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from dynamo_scaler.budgets import intents
from dynamo_scaler.commands import cluster_view, held_scalings
from dynamo_scaler.safety.history import RequestHistory
from dynamo_shared.api.registry.annotations import PLANNER_CONFIG, SCALING_INTENTS
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    ObjectKey,
)
from dynamo_shared.kube.errors import Unavailable
from dynamo_shared.runtime.settings.scaler import Budget, Direction, Scaler, ScalingLimits

from .harness import AUTOSCALER, FREE, SIX, START, ScalerHarness, refused

#: An expired intent.
EXPIRED = {"replicas": 2, "current": 1, "at": 0, "command": "c", "held": True}
SAID_BY = "of the annotation nvidia.com/scaling-policy, else of platform.scaler.limits"


async def test_a_command_held_by_a_cooldown_is_carried_out_once_when_it_ends() -> None:
    harness = ScalerHarness(Scaler(limits=ScalingLimits(down=Direction(cooldown=60)))).having("a", Decode=1)
    await harness.scaling.carry_out(harness.ask("a", "up", Decode=4))
    harness.clock[0] += 10
    held = await harness.scaling.carry_out(harness.ask("a", "down", Decode=2))
    assert held.reason == "Held"
    assert "Cooldown: it was scaled 10 s ago; the cooldown ends in 50 s; the scaler retries until" in held.message
    other = harness.again()
    harness.clock[0] += 49
    await other.resuming.check()
    assert harness.replicas("a")["Decode"] == 4
    harness.clock[0] += 1
    await other.resuming.check()
    await other.resuming.check()
    assert harness.replicas("a")["Decode"] == 2
    assert other.reported.of("a") == [("scale-applied", "Applied")]
    assert harness.intents("a") == {}


async def test_intents_that_a_budget_rejected_are_not_checked_each_second() -> None:
    """There may be thousands of them, and the only work on them is to delete them."""
    harness = ScalerHarness(SIX).having("a", Prefill=3, Decode=3)
    await refused(harness, harness.ask("a", Decode=5))
    assert (harness.view.has_intents(), len(harness.view.keys_with_intents())) == (True, 1)
    assert harness.view.keys_with_intents(held=True) == []
    harness.clock[0] += SIX.intent_lifetime
    await harness.resuming.check(held=True)
    assert harness.intents("a").keys() == {"Decode"}
    await harness.resuming.check()
    assert not harness.view.has_intents()


async def test_graphs_of_one_namespace_do_not_block_those_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant may write anything into the annotations of thousands of graphs, and each expired intent is a write."""
    monkeypatch.setattr(held_scalings, "PASS", 0.0)
    harness = _with_intents_of_two_namespaces({"Gone": EXPIRED})
    for _ in range(2):
        await harness.resuming.check()
    graphs = [each for (resource, _), each in harness.kube.objects.items() if resource == DYNAMO_GRAPH_DEPLOYMENTS.id]
    done = [
        each["metadata"]["namespace"]
        for each in graphs
        if SCALING_INTENTS not in each["metadata"].get("annotations", {})
    ]
    assert sorted(done) == ["quiet", "team"]


def test_partners_come_from_each_namespace_even_if_one_has_thousands_of_intents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_view, "MAX_PARTNERS", 2)
    harness = _with_intents_of_two_namespaces({"Decode": {**EXPIRED, "at": START}})
    assert {each.key.namespace for each in harness.view.open_intents(lambda _: True, START)} == {"quiet", "team"}


def test_a_decision_reads_few_graphs_and_only_those_of_its_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant may keep expired intents in thousands of graphs, each of which was read for each refused command."""
    monkeypatch.setattr(cluster_view, "MOST_READ", 2)
    harness = _with_intents_of_two_namespaces({"Decode": EXPIRED})
    read: list[str] = []

    def recorded(graph: dict[str, Any]) -> dict[str, Any]:
        read.append(graph["metadata"]["namespace"])
        return {}

    monkeypatch.setattr(intents, "read", recorded)
    assert harness.view.open_intents(lambda _: True, START) == []
    assert sorted(read) == ["quiet", "team"]
    read.clear()
    assert harness.view.open_intents(lambda graph: graph.name == "t2", START) == []
    assert read == ["team"]


def _with_intents_of_two_namespaces(intents: dict[str, Any]) -> ScalerHarness:
    """Three graphs of one namespace, then one of another, with the same intents."""
    harness = ScalerHarness(Scaler(limits=FREE))
    for name in ("t1", "t2", "t3"):
        harness.graph(name, adapters=False, Decode=1)
        harness.note(name, **{SCALING_INTENTS: json.dumps(intents)})
    other = copy.deepcopy(harness.kube.objects[DYNAMO_GRAPH_DEPLOYMENTS.id, ObjectKey("team", "t1")])
    other["metadata"] |= {"namespace": "quiet", "uid": "other"}
    harness.kube.put(other)
    harness.read()
    return harness


async def test_no_more_intents_are_read_than_a_graph_has_components() -> None:
    harness = ScalerHarness(Scaler(limits=FREE)).having("a", Decode=1)
    forged = {f"Gone{number}": {**EXPIRED, "command": f"c{number}"} for number in range(600)}
    harness.note("a", **{SCALING_INTENTS: json.dumps(forged)})
    before = len(harness.kube.writes)
    await harness.resuming.check()
    assert (len(harness.kube.writes), harness.reported.events) == (before, [])
    await harness.scaling.carry_out(harness.ask("a", "up", Decode=4))
    assert harness.replicas("a") == {"Decode": 4}


async def test_a_repeated_request_is_held_until_the_time_that_the_answer_says() -> None:
    harness = ScalerHarness(Scaler(limits=ScalingLimits(down=Direction(cooldown=3600)), intent_lifetime=100)).having(
        "a", Decode=1
    )
    await harness.scaling.carry_out(harness.ask("a", "up", Decode=4))
    harness.clock[0] += 10
    first = await harness.scaling.carry_out(harness.ask("a", "down", Decode=2))
    harness.clock[0] += 20
    again = await harness.scaling.carry_out(harness.ask("a", "down-again", Decode=2))
    assert again.message.rpartition("until ")[2] == first.message.rpartition("until ")[2]


async def test_the_answer_names_rejected_components_next_to_held_ones() -> None:
    harness = ScalerHarness(Scaler(limits=ScalingLimits(min=1, down=Direction(cooldown=60)))).having(
        "a", Frontend=1, Decode=1
    )
    await harness.scaling.carry_out(harness.ask("a", "up", Decode=4))
    held = await harness.scaling.carry_out(harness.ask("a", "down", Frontend=0, Decode=2))
    assert held.reason == "Held"
    assert held.message.startswith(
        f"Frontend stays at 1: BelowMinimum: 0 is below its minimum of 1 (min {SAID_BY}); Decode stays at 4: Cooldown: "
    )
    assert "the scaler retries until" in held.message


async def test_the_answer_says_which_bound_stopped_a_component() -> None:
    harness = ScalerHarness(Scaler(limits=ScalingLimits(min=1, max=5))).having("a", Frontend=2, Decode=3)
    answer = await harness.scaling.carry_out(harness.ask("a", Frontend=0, Decode=9))
    assert (answer.reason, harness.replicas("a")) == ("Applied", {"Frontend": 1, "Decode": 5})
    assert answer.message == (
        "Frontend 2 -> 1; Decode 3 -> 5; Frontend scales no further: BelowMinimum: 0 is below its minimum of 1 "
        f"(min {SAID_BY}); Decode scales no further: AboveMaximum: 9 is above its maximum of 5 (max {SAID_BY})"
    )


async def test_steps_continue_to_the_requested_number() -> None:
    harness = ScalerHarness(Scaler(limits=ScalingLimits(up=Direction(step=2, cooldown=30)))).having(
        "a", adapters=False, Decode=1
    )
    answer = await harness.scaling.carry_out(harness.ask("a", Decode=6))
    assert answer.message.startswith(
        "Decode 1 -> 3; Decode not yet at 6: StepLimit: 2 replicas at a time; the scaler retries"
    )
    sizes = []
    for _ in range(4):
        harness.clock[0] += 15
        await harness.resuming.check()
        sizes.append(harness.replicas("a")["Decode"])
    assert sizes == [3, 5, 5, 6]
    assert harness.intents("a") == {}


@pytest.mark.parametrize("broken", [1, 2, 3])
@pytest.mark.parametrize("adapters", [True, False])
async def test_steps_continue_after_an_interruption(broken: int, adapters: bool) -> None:
    harness = ScalerHarness(Scaler(limits=ScalingLimits(up=Direction(step=2, cooldown=30))))
    harness.graph("a", adapters=adapters, Decode=1)
    command = harness.ask("a", Decode=6)
    harness.kube.breaks = broken
    try:
        await harness.scaling.carry_out(command)
    except Unavailable:
        harness = harness.again()
        await harness.resuming.check()
        await harness.scaling.carry_out(command)
    harness.kube.breaks = 0
    sizes = [harness.replicas("a")["Decode"]]
    for _ in range(2):
        harness.clock[0] += 30
        await harness.resuming.check()
        sizes.append(harness.replicas("a")["Decode"])
    assert (sizes, harness.intents("a")) == ([3, 5, 6], {})


async def test_a_restart_starts_the_window_again_for_held_requests() -> None:
    harness = ScalerHarness(Scaler(limits=ScalingLimits(down=Direction(stabilization=300)), intent_lifetime=1000))
    harness.graph("a", Decode=4)
    assert (await harness.scaling.carry_out(harness.ask("a", "down", Decode=2))).reason == "Held"
    harness = harness.again()
    for seconds, replicas in ((0, 4), (299, 4), (1, 2)):
        harness.clock[0] += seconds
        await harness.resuming.check()
        assert harness.replicas("a")["Decode"] == replicas


@pytest.mark.parametrize("advisory", [True, False])
async def test_a_dry_run_respects_the_window_like_the_command(advisory: bool) -> None:
    harness = ScalerHarness(Scaler(limits=ScalingLimits(down=Direction(stabilization=300)), advisory=advisory))
    harness.graph("a", Decode=4)
    trial = replace(harness.ask("a", "trial", Decode=2), dry_run=not advisory)
    assert (await harness.scaling.carry_out(trial)).message.startswith("Decode stays at 4: Stabilizing: ")
    harness.clock[0] += 300
    later = await harness.scaling.carry_out(replace(trial, command="later"))
    # A dry run leaves no request in the window.
    assert later.message.startswith("would scale: " if advisory else "Decode stays at 4: Stabilizing: ")
    assert harness.kube.writes == []


async def test_a_held_request_expires_after_its_lifetime_and_is_reported() -> None:
    harness = ScalerHarness(Scaler(limits=ScalingLimits(down=Direction(cooldown=600)))).having("a", Decode=1)
    await harness.scaling.carry_out(harness.ask("a", "up", Decode=4))
    await harness.scaling.carry_out(harness.ask("a", "down", Decode=2))
    harness.clock[0] += 360
    await harness.resuming.check()
    assert harness.reported.of("a")[-1] == ("scale-refused", "Expired")
    assert "Decode stays at 4: expired after 360 s: Cooldown" in harness.reported.events[-1][2].message
    assert harness.intents("a") == {}


PLANNED = {PLANNER_CONFIG: "plan"}
RESTS = Scaler(limits=ScalingLimits(down=Direction(cooldown=60)))


async def holding(**annotations: str) -> ScalerHarness:
    """A request of the planner that waits for a cooldown, and one of a user."""
    harness = ScalerHarness(RESTS).having("a", Decode=1, Prefill=1)
    harness.note("a", **annotations)
    await harness.scaling.carry_out(harness.ask("a", "up", Decode=4, Prefill=4))
    harness.clock[0] += 10
    await harness.scaling.carry_out(harness.ask("a", "down", "planner", Decode=2))
    await harness.scaling.carry_out(harness.ask("a", "user", "jane", Prefill=3))
    assert set(harness.intents("a")) == {"Decode", "Prefill"}
    return harness


@pytest.mark.parametrize("targets", [(), ("Decode",), ("Prefill",)])
async def test_a_request_that_its_requester_withdraws_is_not_carried_out(targets: tuple[str, ...]) -> None:
    harness = await holding(**PLANNED)
    asked = harness.ask("a", "no more", "planner", "", **dict.fromkeys(targets, 0))
    answer = await harness.scaling.carry_out(replace(asked, withdraw=True))
    given_up = targets != ("Prefill",)
    assert answer.reason == ("Withdrawn" if given_up else "Unchanged")
    assert set(harness.intents("a")) == ({"Prefill"} if given_up else {"Decode", "Prefill"})
    harness.clock[0] += 60
    await harness.resuming.check()
    assert harness.replicas("a") == {"Decode": 4 if given_up else 2, "Prefill": 3}
    assert (("scale-refused", "Withdrawn") in harness.reported.of("a")) is given_up


@pytest.mark.parametrize("withdrawn", [True, False])
async def test_nothing_is_kept_of_a_graph_that_is_deleted_while_its_requests_are_forgotten(withdrawn: bool) -> None:
    """What was noted after its deletion stayed."""
    harness = ScalerHarness(Scaler(limits=ScalingLimits(up=Direction(cooldown=30)))).having("a", Prefill=1, Decode=1)
    await harness.scaling.carry_out(harness.ask("a", "two", Prefill=2, Decode=2))
    asked = replace(harness.ask("a", "three", "r", Prefill=3, Decode=3), sent="2026-01-01T00:00:02Z")
    assert (await harness.scaling.carry_out(asked)).reason == "Held"
    # The request for one component has ended, and the one for the other is noted again after it is forgotten.
    adapter = harness.kube.objects[DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.id, ObjectKey("team", "a-decode")]
    harness.kube.put({**adapter, "spec": {**adapter["spec"], "replicas": 5}})
    harness.read()
    harness.kube.before_write = lambda: harness.cache.remove(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("team", "a"), "uid-a")
    if withdrawn:
        await harness.scaling.carry_out(replace(asked, command="w", targets=(), withdraw=True))
    else:
        await harness.resuming.check()
    assert harness.view.history == RequestHistory()


async def test_an_older_withdrawal_does_not_withdraw_a_newer_request() -> None:
    harness = ScalerHarness(RESTS).having("a", Decode=1)
    harness.note("a", **PLANNED)
    await harness.scaling.carry_out(harness.ask("a", "up", Decode=4))
    later = harness.ask("a", "down", "planner", "2026-01-01T00:00:05Z", Decode=2)
    await harness.scaling.carry_out(later)
    await harness.scaling.carry_out(replace(later, command="x", targets=(), sent="2026-01-01T00:00:04Z", withdraw=True))
    assert set(harness.intents("a")) == {"Decode"}


async def test_a_request_that_another_requester_repeated_is_not_withdrawn() -> None:
    harness = ScalerHarness(RESTS).having("a", Decode=1)
    harness.note("a", **PLANNED)
    await harness.scaling.carry_out(harness.ask("a", "up", Decode=4))
    await harness.scaling.carry_out(harness.ask("a", "down", "planner", Decode=2))
    await harness.scaling.carry_out(harness.ask("a", "same", "jane", Decode=2))
    answer = await harness.scaling.carry_out(replace(harness.ask("a", "no more", "planner"), withdraw=True))
    assert answer.reason == "Unchanged"
    harness.clock[0] += 60
    await harness.resuming.check()
    assert harness.replicas("a")["Decode"] == 2


async def test_a_withdrawal_needs_a_requester() -> None:
    harness = await holding()
    reason, _ = await refused(harness, replace(harness.ask("a", "x"), withdraw=True))
    assert reason == "InvalidCommand"


async def test_a_held_request_of_a_planner_that_was_switched_off_is_withdrawn() -> None:
    harness = await holding()
    await harness.resuming.check()
    assert set(harness.intents("a")) == {"Prefill"}
    assert ("scale-refused", "Withdrawn") in harness.reported.of("a")


async def test_a_held_request_is_dropped_if_another_writer_scaled_the_component() -> None:
    harness = ScalerHarness(Scaler(limits=ScalingLimits(down=Direction(cooldown=60)))).having(
        "a", adapters=False, Decode=1
    )
    await harness.scaling.carry_out(harness.ask("a", "up", Decode=4))
    await harness.scaling.carry_out(harness.ask("a", "down", Decode=2))
    harness.change("a", lambda graph: graph["spec"]["components"][0].update(replicas=5))
    harness.clock[0] += 61
    await harness.resuming.check()
    assert harness.replicas("a")["Decode"] == 5
    assert harness.reported.of("a")[-1] == ("scale-refused", "Superseded")


async def test_the_newest_request_counts() -> None:
    harness = ScalerHarness(Scaler(limits=ScalingLimits(down=Direction(cooldown=60)))).having("a", Decode=1)
    await harness.scaling.carry_out(harness.ask("a", "up", Decode=4))
    await harness.scaling.carry_out(harness.ask("a", "down", Decode=2))
    same = await harness.scaling.carry_out(harness.ask("a", "stay", Decode=4))
    assert same.reason == "Unchanged"
    assert harness.intents("a") == {}
    harness.clock[0] += 100
    await harness.resuming.check()
    assert harness.replicas("a")["Decode"] == 4


async def test_components_requested_together_scale_together_even_if_one_was_held_before() -> None:
    limits = ScalingLimits(up=Direction(cooldown=60), down=Direction(cooldown=120))
    harness = ScalerHarness(Scaler(limits=limits, budgets=(Budget(name="twelve", max_gpus=12),))).having(
        "a", Prefill=6, Decode=6
    )
    await harness.scaling.carry_out(harness.ask("a", "first", Prefill=5, Decode=7))
    harness.clock[0] += 10
    for command, prefill in (("second", 4), ("third", 3)):
        await harness.scaling.carry_out(harness.ask("a", command, Prefill=prefill, Decode=8))
    for seconds, replicas in ((60, {"Prefill": 5, "Decode": 7}), (60, {"Prefill": 3, "Decode": 8})):
        harness.clock[0] += seconds
        await harness.resuming.check()
        assert harness.replicas("a") == replicas
    assert "scale-refused" not in [event for event, _ in harness.reported.of("a")]


async def test_an_unobserved_spec_change_holds_a_command_and_an_unobserved_number_does_not() -> None:
    harness = ScalerHarness(Scaler(limits=FREE)).having("a", adapters=False, Decode=1)
    harness.kube.acts = False
    await harness.scaling.carry_out(harness.ask("a", "one", Decode=2))
    assert (await harness.scaling.carry_out(harness.ask("a", "two", Decode=3))).reason == "Applied"
    harness.change("a", lambda graph: graph["spec"].update(backendFramework="vllm"))
    held = await harness.scaling.carry_out(harness.ask("a", "three", Decode=4))
    assert held.reason == "Held"
    assert "RolloutInProgress: the platform has not acted on the latest change of the graph yet" in held.message
    harness.kube.acts = True
    harness.note("a", reported="now")
    await harness.resuming.check()
    assert harness.replicas("a")["Decode"] == 4


async def test_a_held_request_is_dropped_if_the_platform_no_longer_scales_the_graph() -> None:
    resting = ScalingLimits(down=Direction(cooldown=60))
    harness = ScalerHarness(Scaler(limits=resting)).having("a", Decode=1)
    await harness.scaling.carry_out(harness.ask("a", "up", Decode=4))
    await harness.scaling.carry_out(harness.ask("a", "down", Decode=2))
    harness.clock[0] += 61
    for changed in (Scaler(limits=resting, advisory=True), Scaler(limits=resting, managed=("other",))):
        await ScalerHarness(changed, harness.kube, harness.clock).resuming.check()
        assert harness.replicas("a")["Decode"] == 4
    harness.cache.put(HORIZONTAL_POD_AUTOSCALERS, AUTOSCALER)
    await harness.resuming.check()
    assert harness.replicas("a")["Decode"] == 4
    assert harness.reported.of("a")[-1] == ("scale-refused", "HasAutoscaler")
    assert harness.intents("a") == {}


async def test_a_component_with_an_autoscaler_is_not_a_partner() -> None:
    harness = ScalerHarness(SIX).having("a", Prefill=3, Decode=3)
    await refused(harness, harness.ask("a", "up", Decode=4))
    harness.cache.put(HORIZONTAL_POD_AUTOSCALERS, AUTOSCALER)
    assert (await refused(harness, harness.ask("a", "down", Prefill=2)))[0] == "BudgetFloor"


async def test_a_partner_is_not_held_if_the_first_half_of_a_transfer_is_rejected() -> None:
    """Its intent stays as before: rejected by its budget, and its requester has the answer."""
    harness = ScalerHarness(SIX).having("a", Prefill=3, Decode=3)
    await refused(harness, harness.ask("a", "up", Decode=4))
    before = harness.intents("a")["Decode"]
    assert not before.get("held")
    harness.kube.refused = "dynamographdeploymentscalingadapters a-prefill"
    harness.clock[0] += 5
    assert (await refused(harness, harness.ask("a", "down", Prefill=2)))[0] == "WriteRefused"
    assert harness.intents("a") == {"Decode": before}
    reported = len(harness.reported.events)
    await harness.resuming.check()
    assert (harness.intents("a"), len(harness.reported.events)) == ({"Decode": before}, reported)


async def test_a_held_command_that_cannot_be_written_does_not_block_another_one_of_its_graph() -> None:
    harness = ScalerHarness(Scaler(limits=ScalingLimits(min=0, up=Direction(cooldown=30)))).having(
        "a", Prefill=1, Decode=1
    )
    for name in ("Prefill", "Decode"):
        await harness.scaling.carry_out(harness.ask("a", f"{name}-2", **{name: 2}))  # type: ignore[arg-type]
        assert (await harness.scaling.carry_out(harness.ask("a", f"{name}-3", **{name: 3}))).reason == "Held"  # type: ignore[arg-type]
    harness.clock[0] += 60

    def away() -> None:
        raise Unavailable(500, "InternalError", "failed calling webhook")

    harness.kube.before_write = away
    with pytest.raises(Unavailable):
        await harness.resuming.check()
    assert sorted(harness.replicas("a").values()) == [2, 3]
    await harness.resuming.check()
    assert harness.replicas("a") == {"Prefill": 3, "Decode": 3}


@pytest.mark.parametrize("broken", [1, 2, 3])
@pytest.mark.parametrize("position", [0, 1])
async def test_a_held_command_continues_after_an_interruption(broken: int, position: int) -> None:
    harness = ScalerHarness(Scaler(limits=ScalingLimits(up=Direction(cooldown=30)))).having("a", Prefill=1, Decode=1)
    # One component is scaled by its adapter, one in the graph. The graph's annotation has the intents of both.
    harness.change("a", lambda graph: graph["spec"]["components"][position].pop("scalingAdapter"))
    await harness.scaling.carry_out(harness.ask("a", "two", Prefill=2, Decode=2))
    assert (await harness.scaling.carry_out(harness.ask("a", "three", Prefill=3, Decode=3))).reason == "Held"
    harness.clock[0] += 60
    harness.kube.breaks = broken
    with suppress(Unavailable):
        await harness.resuming.check()
    harness.kube.breaks = 0
    harness = harness.again()
    await harness.resuming.check()
    pools = harness.view.pools(harness.view.graph(ObjectKey("team", "a")))  # type: ignore[arg-type]
    assert ({pool.current for pool in pools}, harness.intents("a")) == ({3}, {})


async def test_the_next_owner_keeps_intents_that_its_cache_does_not_have_yet() -> None:
    """The owner gives the key away after its last command. The next owner's cache receives that write later."""
    harness = ScalerHarness(Scaler(limits=ScalingLimits(up=Direction(cooldown=30)))).having("a", Prefill=1, Decode=1)
    harness.note("a", team="one")
    await harness.scaling.carry_out(harness.ask("a", "two", Prefill=2, Decode=2))
    other = harness.again()
    for each, command, replicas in ((harness, "first", {"Prefill": 3}), (other, "second", {"Decode": 3})):
        answer = await each.scaling.carry_out(each.ask("a", command, **replicas))  # type: ignore[arg-type]
        assert answer.reason == "Held"
    assert set(other.intents("a")) == {"Prefill", "Decode"}
    other.clock[0] += 30
    await other.resuming.check()
    assert (other.replicas("a"), other.intents("a")) == ({"Prefill": 3, "Decode": 3}, {})


async def test_a_component_that_was_written_before_a_rejected_write_is_not_reported_as_rejected() -> None:
    harness = ScalerHarness(Scaler(limits=ScalingLimits(up=Direction(cooldown=30)))).having("a", Prefill=1, Decode=1)
    await harness.scaling.carry_out(harness.ask("a", "two", Prefill=2, Decode=2))
    assert (await harness.scaling.carry_out(harness.ask("a", "three", Prefill=3, Decode=3))).reason == "Held"
    harness.clock[0] += 60
    before = len(harness.reported.events)
    harness.kube.refused = "dynamographdeploymentscalingadapters a-prefill"
    await harness.resuming.check()
    assert (harness.replicas("a"), harness.intents("a")) == ({"Prefill": 2, "Decode": 3}, {})
    [(_, event, data)] = harness.reported.events[before:]
    assert (event, data.reason) == ("scale-refused", "WriteRefused")
    assert [each.component for each in data.components] == ["Prefill"]
    assert "written before that: team/a Decode 2 -> 3" in data.message


async def test_a_command_that_is_rejected_after_its_first_write_is_not_carried_out_later() -> None:
    """The remaining replicas are recorded before the first step, which comes too late."""
    harness = ScalerHarness(Scaler(limits=ScalingLimits(up=Direction(step=2, cooldown=30)))).having("a", Decode=1)

    def another_user() -> None:
        harness.change("a", lambda graph: graph["spec"].update(backendFramework="vllm"))
        adapter = harness.kube.objects[DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.id, ObjectKey("team", "a-decode")]
        harness.kube.put({**adapter, "metadata": {**adapter["metadata"], "annotations": {"of": "another"}}})

    # Before the second write, which is the adapter's.
    harness.kube.before_write = lambda: setattr(harness.kube, "before_write", another_user)
    asked = replace(harness.ask("a", Decode=6), expected_generation=1)
    assert (await refused(harness, asked))[0] == "StaleGeneration"
    assert harness.intents("a") == {}
    harness.clock[0] += 30
    await harness.resuming.check()
    assert harness.replicas("a")["Decode"] == 1


async def test_a_half_written_command_continues_although_its_first_write_raised_the_generation() -> None:
    harness = ScalerHarness(Scaler(limits=FREE)).having("a", Prefill=1, Decode=1)
    # One component is scaled by its adapter, one in the graph.
    harness.change("a", lambda graph: graph["spec"]["components"][0].pop("scalingAdapter"))
    generation = harness.kube.objects[DYNAMO_GRAPH_DEPLOYMENTS.id, ObjectKey("team", "a")]["metadata"]["generation"]
    command = replace(harness.ask("a", Prefill=2, Decode=2), expected_generation=generation)
    harness.kube.breaks = 2
    with pytest.raises(Unavailable):
        await harness.scaling.carry_out(command)
    assert len(harness.kube.writes) == 1
    assert (await harness.again().scaling.carry_out(command)).reason == "Applied"
    graph = harness.kube.objects[DYNAMO_GRAPH_DEPLOYMENTS.id, ObjectKey("team", "a")]
    assert graph["spec"]["components"][0]["replicas"] == 2
    assert harness.replicas("a")["Decode"] == 2
    other = replace(command, command="another")
    assert (await refused(harness.again(), other))[0] == "StaleGeneration"
