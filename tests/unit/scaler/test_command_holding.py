"""Commands that take time: cooldowns, steps, and intents that are held until they are allowed."""

import copy
import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from dynamo_scaler.commands import cluster_view, held_scalings
from dynamo_shared.api.registry.annotations import PLANNER_CONFIG, SCALING_INTENTS
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    ObjectKey,
)
from dynamo_shared.kube.errors import Unavailable
from dynamo_shared.runtime.settings.scaler import Budget, Direction, Scaler, ScalingLimits

from .desk import AUTOSCALER, FREE, SIX, START, Desk, refused

#: An expired intent.
EXPIRED = {"replicas": 2, "current": 1, "at": 0, "command": "c", "held": True}
SAID_BY = "of the annotation nvidia.com/scaling-policy, else of platform.scaler.limits"


async def test_a_command_held_by_a_cooldown_is_carried_out_once_when_it_ends() -> None:
    desk = Desk(Scaler(limits=ScalingLimits(down=Direction(cooldown=60)))).having("a", Decode=1)
    await desk.scaling.carry_out(desk.ask("a", "up", Decode=4))
    desk.clock[0] += 10
    held = await desk.scaling.carry_out(desk.ask("a", "down", Decode=2))
    assert held.reason == "Held"
    assert "Cooldown: it was scaled 10 s ago; the cooldown ends in 50 s; the scaler retries until" in held.message
    other = desk.again()
    desk.clock[0] += 49
    await other.resuming.check()
    assert desk.replicas("a")["Decode"] == 4
    desk.clock[0] += 1
    await other.resuming.check()
    await other.resuming.check()
    assert desk.replicas("a")["Decode"] == 2
    assert other.reported.of("a") == [("scale-applied", "Applied")]
    assert desk.intents("a") == {}


async def test_intents_that_a_budget_rejected_are_not_checked_each_second() -> None:
    """There may be thousands of them, and the only work on them is to delete them."""
    desk = Desk(SIX).having("a", Prefill=3, Decode=3)
    await refused(desk, desk.ask("a", Decode=5))
    assert (desk.view.has_intents(), len(desk.view.keys_with_intents())) == (True, 1)
    assert desk.view.keys_with_intents(held=True) == []
    desk.clock[0] += SIX.intent_lifetime
    await desk.resuming.check(held=True)
    assert desk.intents("a").keys() == {"Decode"}
    await desk.resuming.check()
    assert not desk.view.has_intents()


async def test_graphs_of_one_namespace_do_not_block_those_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant may write anything into the annotations of thousands of graphs, and each expired intent is a write."""
    monkeypatch.setattr(held_scalings, "PASS", 0.0)
    desk = _with_intents_of_two_namespaces({"Gone": EXPIRED})
    for _ in range(2):
        await desk.resuming.check()
    graphs = [each for (resource, _), each in desk.kube.objects.items() if resource == DYNAMO_GRAPH_DEPLOYMENTS.id]
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
    desk = _with_intents_of_two_namespaces({"Decode": {**EXPIRED, "at": START}})
    every = {pool.key: pool for pool in desk.view.all_pools()}
    assert {each.key.namespace for each in desk.view.open_intents(every, START)} == {"quiet", "team"}


def _with_intents_of_two_namespaces(intents: dict[str, Any]) -> Desk:
    """Three graphs of one namespace, then one of another, with the same intents."""
    desk = Desk(Scaler(limits=FREE))
    for name in ("t1", "t2", "t3"):
        desk.graph(name, adapters=False, Decode=1)
        desk.note(name, **{SCALING_INTENTS: json.dumps(intents)})
    other = copy.deepcopy(desk.kube.objects[DYNAMO_GRAPH_DEPLOYMENTS.id, ObjectKey("team", "t1")])
    other["metadata"] |= {"namespace": "quiet", "uid": "other"}
    desk.kube.put(other)
    desk.read()
    return desk


async def test_no_more_intents_are_read_than_a_graph_has_components() -> None:
    desk = Desk(Scaler(limits=FREE)).having("a", Decode=1)
    forged = {f"Gone{number}": {**EXPIRED, "command": f"c{number}"} for number in range(600)}
    desk.note("a", **{SCALING_INTENTS: json.dumps(forged)})
    before = len(desk.kube.writes)
    await desk.resuming.check()
    assert (len(desk.kube.writes), desk.reported.events) == (before, [])
    await desk.scaling.carry_out(desk.ask("a", "up", Decode=4))
    assert desk.replicas("a") == {"Decode": 4}


async def test_a_repeated_request_is_held_until_the_time_that_the_answer_says() -> None:
    desk = Desk(Scaler(limits=ScalingLimits(down=Direction(cooldown=3600)), intent_lifetime=100)).having("a", Decode=1)
    await desk.scaling.carry_out(desk.ask("a", "up", Decode=4))
    desk.clock[0] += 10
    first = await desk.scaling.carry_out(desk.ask("a", "down", Decode=2))
    desk.clock[0] += 20
    again = await desk.scaling.carry_out(desk.ask("a", "down-again", Decode=2))
    assert again.message.rpartition("until ")[2] == first.message.rpartition("until ")[2]


async def test_the_answer_names_rejected_components_next_to_held_ones() -> None:
    desk = Desk(Scaler(limits=ScalingLimits(min=1, down=Direction(cooldown=60)))).having("a", Frontend=1, Decode=1)
    await desk.scaling.carry_out(desk.ask("a", "up", Decode=4))
    held = await desk.scaling.carry_out(desk.ask("a", "down", Frontend=0, Decode=2))
    assert held.reason == "Held"
    assert held.message.startswith(
        f"Frontend stays at 1: BelowMinimum: 0 is below its minimum of 1 (min {SAID_BY}); Decode stays at 4: Cooldown: "
    )
    assert "the scaler retries until" in held.message


async def test_the_answer_says_which_bound_stopped_a_component() -> None:
    desk = Desk(Scaler(limits=ScalingLimits(min=1, max=5))).having("a", Frontend=2, Decode=3)
    answer = await desk.scaling.carry_out(desk.ask("a", Frontend=0, Decode=9))
    assert (answer.reason, desk.replicas("a")) == ("Applied", {"Frontend": 1, "Decode": 5})
    assert answer.message == (
        "Frontend 2 -> 1; Decode 3 -> 5; Frontend scales no further: BelowMinimum: 0 is below its minimum of 1 "
        f"(min {SAID_BY}); Decode scales no further: AboveMaximum: 9 is above its maximum of 5 (max {SAID_BY})"
    )


async def test_steps_continue_to_the_requested_number() -> None:
    desk = Desk(Scaler(limits=ScalingLimits(up=Direction(step=2, cooldown=30)))).having("a", adapters=False, Decode=1)
    answer = await desk.scaling.carry_out(desk.ask("a", Decode=6))
    assert answer.message.startswith(
        "Decode 1 -> 3; Decode not yet at 6: StepLimit: 2 replicas at a time; the scaler retries"
    )
    sizes = []
    for _ in range(4):
        desk.clock[0] += 15
        await desk.resuming.check()
        sizes.append(desk.replicas("a")["Decode"])
    assert sizes == [3, 5, 5, 6]
    assert desk.intents("a") == {}


@pytest.mark.parametrize("broken", [1, 2, 3])
@pytest.mark.parametrize("adapters", [True, False])
async def test_steps_continue_after_an_interruption(broken: int, adapters: bool) -> None:
    desk = Desk(Scaler(limits=ScalingLimits(up=Direction(step=2, cooldown=30))))
    desk.graph("a", adapters=adapters, Decode=1)
    command = desk.ask("a", Decode=6)
    desk.kube.breaks = broken
    try:
        await desk.scaling.carry_out(command)
    except Unavailable:
        desk = desk.again()
        await desk.resuming.check()
        await desk.scaling.carry_out(command)
    desk.kube.breaks = 0
    sizes = [desk.replicas("a")["Decode"]]
    for _ in range(2):
        desk.clock[0] += 30
        await desk.resuming.check()
        sizes.append(desk.replicas("a")["Decode"])
    assert (sizes, desk.intents("a")) == ([3, 5, 6], {})


async def test_a_restart_starts_the_window_again_for_held_requests() -> None:
    desk = Desk(Scaler(limits=ScalingLimits(down=Direction(stabilization=300)), intent_lifetime=1000))
    desk.graph("a", Decode=4)
    assert (await desk.scaling.carry_out(desk.ask("a", "down", Decode=2))).reason == "Held"
    desk = desk.again()
    for seconds, replicas in ((0, 4), (299, 4), (1, 2)):
        desk.clock[0] += seconds
        await desk.resuming.check()
        assert desk.replicas("a")["Decode"] == replicas


@pytest.mark.parametrize("advisory", [True, False])
async def test_a_dry_run_respects_the_window_like_the_command(advisory: bool) -> None:
    desk = Desk(Scaler(limits=ScalingLimits(down=Direction(stabilization=300)), advisory=advisory))
    desk.graph("a", Decode=4)
    trial = replace(desk.ask("a", "trial", Decode=2), dry_run=not advisory)
    assert (await desk.scaling.carry_out(trial)).message.startswith("Decode stays at 4: Stabilizing: ")
    desk.clock[0] += 300
    later = await desk.scaling.carry_out(replace(trial, command="later"))
    # A dry run leaves no request in the window.
    assert later.message.startswith("would scale: " if advisory else "Decode stays at 4: Stabilizing: ")
    assert desk.kube.writes == []


async def test_a_held_request_expires_after_its_lifetime_and_is_reported() -> None:
    desk = Desk(Scaler(limits=ScalingLimits(down=Direction(cooldown=600)))).having("a", Decode=1)
    await desk.scaling.carry_out(desk.ask("a", "up", Decode=4))
    await desk.scaling.carry_out(desk.ask("a", "down", Decode=2))
    desk.clock[0] += 360
    await desk.resuming.check()
    assert desk.reported.of("a")[-1] == ("scale-refused", "Expired")
    assert "Decode stays at 4: expired after 360 s: Cooldown" in desk.reported.events[-1][2].message
    assert desk.intents("a") == {}


PLANNED = {PLANNER_CONFIG: "plan"}
RESTS = Scaler(limits=ScalingLimits(down=Direction(cooldown=60)))


async def holding(**annotations: str) -> Desk:
    """A request of the planner that waits for a cooldown, and one of a user."""
    desk = Desk(RESTS).having("a", Decode=1, Prefill=1)
    desk.note("a", **annotations)
    await desk.scaling.carry_out(desk.ask("a", "up", Decode=4, Prefill=4))
    desk.clock[0] += 10
    await desk.scaling.carry_out(desk.ask("a", "down", "planner", Decode=2))
    await desk.scaling.carry_out(desk.ask("a", "user", "jane", Prefill=3))
    assert set(desk.intents("a")) == {"Decode", "Prefill"}
    return desk


@pytest.mark.parametrize("targets", [(), ("Decode",), ("Prefill",)])
async def test_a_request_that_its_requester_withdraws_is_not_carried_out(targets: tuple[str, ...]) -> None:
    desk = await holding(**PLANNED)
    asked = desk.ask("a", "no more", "planner", "", **dict.fromkeys(targets, 0))
    answer = await desk.scaling.carry_out(replace(asked, withdraw=True))
    given_up = targets != ("Prefill",)
    assert answer.reason == ("Withdrawn" if given_up else "Unchanged")
    assert set(desk.intents("a")) == ({"Prefill"} if given_up else {"Decode", "Prefill"})
    desk.clock[0] += 60
    await desk.resuming.check()
    assert desk.replicas("a") == {"Decode": 4 if given_up else 2, "Prefill": 3}
    assert (("scale-refused", "Withdrawn") in desk.reported.of("a")) is given_up


async def test_an_older_withdrawal_does_not_withdraw_a_newer_request() -> None:
    desk = Desk(RESTS).having("a", Decode=1)
    desk.note("a", **PLANNED)
    await desk.scaling.carry_out(desk.ask("a", "up", Decode=4))
    later = desk.ask("a", "down", "planner", "2026-01-01T00:00:05Z", Decode=2)
    await desk.scaling.carry_out(later)
    await desk.scaling.carry_out(replace(later, command="x", targets=(), sent="2026-01-01T00:00:04Z", withdraw=True))
    assert set(desk.intents("a")) == {"Decode"}


async def test_a_request_that_another_requester_repeated_is_not_withdrawn() -> None:
    desk = Desk(RESTS).having("a", Decode=1)
    desk.note("a", **PLANNED)
    await desk.scaling.carry_out(desk.ask("a", "up", Decode=4))
    await desk.scaling.carry_out(desk.ask("a", "down", "planner", Decode=2))
    await desk.scaling.carry_out(desk.ask("a", "same", "jane", Decode=2))
    answer = await desk.scaling.carry_out(replace(desk.ask("a", "no more", "planner"), withdraw=True))
    assert answer.reason == "Unchanged"
    desk.clock[0] += 60
    await desk.resuming.check()
    assert desk.replicas("a")["Decode"] == 2


async def test_a_withdrawal_needs_a_requester() -> None:
    desk = await holding()
    reason, _ = await refused(desk, replace(desk.ask("a", "x"), withdraw=True))
    assert reason == "InvalidCommand"


async def test_a_held_request_of_a_planner_that_was_switched_off_is_withdrawn() -> None:
    desk = await holding()
    await desk.resuming.check()
    assert set(desk.intents("a")) == {"Prefill"}
    assert ("scale-refused", "Withdrawn") in desk.reported.of("a")


async def test_a_held_request_is_dropped_if_another_writer_scaled_the_component() -> None:
    desk = Desk(Scaler(limits=ScalingLimits(down=Direction(cooldown=60)))).having("a", adapters=False, Decode=1)
    await desk.scaling.carry_out(desk.ask("a", "up", Decode=4))
    await desk.scaling.carry_out(desk.ask("a", "down", Decode=2))
    desk.change("a", lambda graph: graph["spec"]["components"][0].update(replicas=5))
    desk.clock[0] += 61
    await desk.resuming.check()
    assert desk.replicas("a")["Decode"] == 5
    assert desk.reported.of("a")[-1] == ("scale-refused", "Superseded")


async def test_the_newest_request_counts() -> None:
    desk = Desk(Scaler(limits=ScalingLimits(down=Direction(cooldown=60)))).having("a", Decode=1)
    await desk.scaling.carry_out(desk.ask("a", "up", Decode=4))
    await desk.scaling.carry_out(desk.ask("a", "down", Decode=2))
    same = await desk.scaling.carry_out(desk.ask("a", "stay", Decode=4))
    assert same.reason == "Unchanged"
    assert desk.intents("a") == {}
    desk.clock[0] += 100
    await desk.resuming.check()
    assert desk.replicas("a")["Decode"] == 4


async def test_components_requested_together_scale_together_even_if_one_was_held_before() -> None:
    limits = ScalingLimits(up=Direction(cooldown=60), down=Direction(cooldown=120))
    desk = Desk(Scaler(limits=limits, budgets=(Budget(name="twelve", max_gpus=12),))).having("a", Prefill=6, Decode=6)
    await desk.scaling.carry_out(desk.ask("a", "first", Prefill=5, Decode=7))
    desk.clock[0] += 10
    for command, prefill in (("second", 4), ("third", 3)):
        await desk.scaling.carry_out(desk.ask("a", command, Prefill=prefill, Decode=8))
    for seconds, replicas in ((60, {"Prefill": 5, "Decode": 7}), (60, {"Prefill": 3, "Decode": 8})):
        desk.clock[0] += seconds
        await desk.resuming.check()
        assert desk.replicas("a") == replicas
    assert "scale-refused" not in [event for event, _ in desk.reported.of("a")]


async def test_an_unobserved_spec_change_holds_a_command_and_an_unobserved_number_does_not() -> None:
    desk = Desk(Scaler(limits=FREE)).having("a", adapters=False, Decode=1)
    desk.kube.acts = False
    await desk.scaling.carry_out(desk.ask("a", "one", Decode=2))
    assert (await desk.scaling.carry_out(desk.ask("a", "two", Decode=3))).reason == "Applied"
    desk.change("a", lambda graph: graph["spec"].update(backendFramework="vllm"))
    held = await desk.scaling.carry_out(desk.ask("a", "three", Decode=4))
    assert held.reason == "Held"
    assert "RolloutInProgress: the platform has not acted on the latest change of the graph yet" in held.message
    desk.kube.acts = True
    desk.note("a", reported="now")
    await desk.resuming.check()
    assert desk.replicas("a")["Decode"] == 4


async def test_a_held_request_is_dropped_if_the_platform_no_longer_scales_the_graph() -> None:
    resting = ScalingLimits(down=Direction(cooldown=60))
    desk = Desk(Scaler(limits=resting)).having("a", Decode=1)
    await desk.scaling.carry_out(desk.ask("a", "up", Decode=4))
    await desk.scaling.carry_out(desk.ask("a", "down", Decode=2))
    desk.clock[0] += 61
    for changed in (Scaler(limits=resting, advisory=True), Scaler(limits=resting, managed=("other",))):
        await Desk(changed, desk.kube, desk.clock).resuming.check()
        assert desk.replicas("a")["Decode"] == 4
    desk.cache.put(HORIZONTAL_POD_AUTOSCALERS, AUTOSCALER)
    await desk.resuming.check()
    assert desk.replicas("a")["Decode"] == 4
    assert desk.reported.of("a")[-1] == ("scale-refused", "HasAutoscaler")
    assert desk.intents("a") == {}


async def test_a_component_with_an_autoscaler_is_not_a_partner() -> None:
    desk = Desk(SIX).having("a", Prefill=3, Decode=3)
    await refused(desk, desk.ask("a", "up", Decode=4))
    desk.cache.put(HORIZONTAL_POD_AUTOSCALERS, AUTOSCALER)
    assert (await refused(desk, desk.ask("a", "down", Prefill=2)))[0] == "BudgetFloor"


async def test_a_partner_is_not_held_if_the_first_half_of_a_transfer_is_rejected() -> None:
    """Its intent stays as before: rejected by its budget, and its requester has the answer."""
    desk = Desk(SIX).having("a", Prefill=3, Decode=3)
    await refused(desk, desk.ask("a", "up", Decode=4))
    before = desk.intents("a")["Decode"]
    assert not before.get("held")
    desk.kube.refused = "dynamographdeploymentscalingadapters a-prefill"
    desk.clock[0] += 5
    assert (await refused(desk, desk.ask("a", "down", Prefill=2)))[0] == "WriteRefused"
    assert desk.intents("a") == {"Decode": before}
    reported = len(desk.reported.events)
    await desk.resuming.check()
    assert (desk.intents("a"), len(desk.reported.events)) == ({"Decode": before}, reported)


async def test_a_held_command_that_cannot_be_written_does_not_block_another_one_of_its_graph() -> None:
    desk = Desk(Scaler(limits=ScalingLimits(min=0, up=Direction(cooldown=30)))).having("a", Prefill=1, Decode=1)
    for name in ("Prefill", "Decode"):
        await desk.scaling.carry_out(desk.ask("a", f"{name}-2", **{name: 2}))  # type: ignore[arg-type]
        assert (await desk.scaling.carry_out(desk.ask("a", f"{name}-3", **{name: 3}))).reason == "Held"  # type: ignore[arg-type]
    desk.clock[0] += 60

    def away() -> None:
        raise Unavailable(500, "InternalError", "failed calling webhook")

    desk.kube.before_write = away
    with pytest.raises(Unavailable):
        await desk.resuming.check()
    assert sorted(desk.replicas("a").values()) == [2, 3]
    await desk.resuming.check()
    assert desk.replicas("a") == {"Prefill": 3, "Decode": 3}


@pytest.mark.parametrize("broken", [1, 2, 3])
@pytest.mark.parametrize("position", [0, 1])
async def test_a_held_command_continues_after_an_interruption(broken: int, position: int) -> None:
    desk = Desk(Scaler(limits=ScalingLimits(up=Direction(cooldown=30)))).having("a", Prefill=1, Decode=1)
    # One component is scaled by its adapter, one in the graph. The graph's annotation has the intents of both.
    desk.change("a", lambda graph: graph["spec"]["components"][position].pop("scalingAdapter"))
    await desk.scaling.carry_out(desk.ask("a", "two", Prefill=2, Decode=2))
    assert (await desk.scaling.carry_out(desk.ask("a", "three", Prefill=3, Decode=3))).reason == "Held"
    desk.clock[0] += 60
    desk.kube.breaks = broken
    with suppress(Unavailable):
        await desk.resuming.check()
    desk.kube.breaks = 0
    desk = desk.again()
    await desk.resuming.check()
    pools = desk.view.pools(desk.view.graph(ObjectKey("team", "a")))  # type: ignore[arg-type]
    assert ({pool.current for pool in pools}, desk.intents("a")) == ({3}, {})


async def test_the_next_owner_keeps_intents_that_its_cache_does_not_have_yet() -> None:
    """The owner gives the key away after its last command. The next owner's cache receives that write later."""
    desk = Desk(Scaler(limits=ScalingLimits(up=Direction(cooldown=30)))).having("a", Prefill=1, Decode=1)
    desk.note("a", team="one")
    await desk.scaling.carry_out(desk.ask("a", "two", Prefill=2, Decode=2))
    other = desk.again()
    for each, command, replicas in ((desk, "first", {"Prefill": 3}), (other, "second", {"Decode": 3})):
        answer = await each.scaling.carry_out(each.ask("a", command, **replicas))  # type: ignore[arg-type]
        assert answer.reason == "Held"
    assert set(other.intents("a")) == {"Prefill", "Decode"}
    other.clock[0] += 30
    await other.resuming.check()
    assert (other.replicas("a"), other.intents("a")) == ({"Prefill": 3, "Decode": 3}, {})


async def test_a_command_that_is_rejected_after_its_first_write_is_not_carried_out_later() -> None:
    """The remaining replicas are recorded before the first step, which comes too late."""
    desk = Desk(Scaler(limits=ScalingLimits(up=Direction(step=2, cooldown=30)))).having("a", Decode=1)

    def another_user() -> None:
        desk.change("a", lambda graph: graph["spec"].update(backendFramework="vllm"))
        adapter = desk.kube.objects[DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.id, ObjectKey("team", "a-decode")]
        desk.kube.put({**adapter, "metadata": {**adapter["metadata"], "annotations": {"of": "another"}}})

    # Before the second write, which is the adapter's.
    desk.kube.before_write = lambda: setattr(desk.kube, "before_write", another_user)
    asked = replace(desk.ask("a", Decode=6), expected_generation=1)
    assert (await refused(desk, asked))[0] == "StaleGeneration"
    assert desk.intents("a") == {}
    desk.clock[0] += 30
    await desk.resuming.check()
    assert desk.replicas("a")["Decode"] == 1


async def test_a_half_written_command_continues_although_its_first_write_raised_the_generation() -> None:
    desk = Desk(Scaler(limits=FREE)).having("a", Prefill=1, Decode=1)
    # One component is scaled by its adapter, one in the graph.
    desk.change("a", lambda graph: graph["spec"]["components"][0].pop("scalingAdapter"))
    generation = desk.kube.objects[DYNAMO_GRAPH_DEPLOYMENTS.id, ObjectKey("team", "a")]["metadata"]["generation"]
    command = replace(desk.ask("a", Prefill=2, Decode=2), expected_generation=generation)
    desk.kube.breaks = 2
    with pytest.raises(Unavailable):
        await desk.scaling.carry_out(command)
    assert len(desk.kube.writes) == 1
    assert (await desk.again().scaling.carry_out(command)).reason == "Applied"
    graph = desk.kube.objects[DYNAMO_GRAPH_DEPLOYMENTS.id, ObjectKey("team", "a")]
    assert graph["spec"]["components"][0]["replicas"] == 2
    assert desk.replicas("a")["Decode"] == 2
    other = replace(command, command="another")
    assert (await refused(desk.again(), other))[0] == "StaleGeneration"
