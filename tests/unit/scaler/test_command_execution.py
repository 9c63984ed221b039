"""Commands from request to report: written once, recorded, and continued after any interruption."""

import gc
import weakref
from dataclasses import replace
from typing import Any

import pytest
from dynamo_scaler.commands import last_commands
from dynamo_scaler.commands.answers import Answers
from dynamo_shared.api.registry.annotations import LAST_SCALED, SCALING_INTENTS, SCALING_POLICY
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    ObjectKey,
)
from dynamo_shared.bus import EventPublisher, streams
from dynamo_shared.bus.commands import Answered, CommandRefusedError
from dynamo_shared.kube.errors import KubeError, NotServed, Unavailable
from dynamo_shared.runtime.settings.scaler import Budget, Direction, Scaler, ScalingLimits
from dynamo_shared.state.versions import Version
from dynamo_shared.wire.specifications.platform import COMMAND, CommandResult
from hypothesis import given
from hypothesis import strategies as st

from tests.building.memory_bus import MemoryBus
from tests.examples import examples

from .harness import AUTOSCALER, FREE, SIX, START, TWELVE, ScalerHarness, refused


@pytest.mark.parametrize("adapters", [True, False])
async def test_an_allowed_command_writes_replicas_and_their_record_together(adapters: bool) -> None:
    harness = ScalerHarness(Scaler(limits=FREE)).having("a", adapters=adapters, Prefill=3, Decode=3)
    answer = await harness.scaling.carry_out(harness.ask("a", Prefill=1, Decode=5))
    assert answer == Answered("Applied", "Prefill 3 -> 1; Decode 3 -> 5")
    assert harness.replicas("a") == {"Prefill": 1, "Decode": 5}
    graphs = "patch DynamoGraphDeployment a"
    adapter = "patch DynamoGraphDeploymentScalingAdapter a-"
    assert harness.kube.writes == ([f"{adapter}prefill", f"{adapter}decode"] if adapters else [graphs])
    assert harness.reported.of("a") == [("scale-applied", "Applied")]
    assert [(type_, reason) for type_, reason, _ in harness.reported.kube_events] == [("Normal", "Scaled")]


@pytest.mark.parametrize("adapters", [True, False])
async def test_case_24_applies_to_stored_intents(adapters: bool) -> None:
    harness = ScalerHarness(SIX).having("a", adapters=adapters, Prefill=3, Decode=3)
    reason, message = await refused(harness, harness.ask("a", "up", Decode=4))
    assert (reason, "the scaler keeps the request until" in message) == ("BudgetCeiling", True)
    assert harness.intents("a")["Decode"]["replicas"] == 4
    answer = await harness.again().scaling.carry_out(harness.ask("a", "down", Prefill=2))
    assert answer == Answered("Paired", "Prefill 3 -> 2; team/a Decode 3 -> 4")
    assert harness.replicas("a") == {"Prefill": 2, "Decode": 4}
    assert harness.intents("a") == {}


async def test_a_transfer_between_two_graphs_is_two_writes_and_both_are_reported() -> None:
    harness = ScalerHarness(TWELVE)
    for name in ("a", "b"):
        harness.graph(name, adapters=False, Prefill=3, Decode=3)
    await refused(harness, harness.ask("a", "down", Prefill=2))
    harness.kube.writes.clear()
    await harness.scaling.carry_out(harness.ask("b", "up", Decode=4))
    assert harness.kube.writes == ["patch DynamoGraphDeployment a", "patch DynamoGraphDeployment b"]
    assert (harness.replicas("a"), harness.replicas("b")) == ({"Prefill": 2, "Decode": 3}, {"Prefill": 3, "Decode": 4})
    assert harness.reported.of("a") == [("scale-refused", "BudgetFloor"), ("scale-applied", "Paired")]
    (heard,) = [data for name, event, data in harness.reported.events if (name, event) == ("a", "scale-applied")]
    assert heard.command == "down"


async def test_an_intent_is_deleted_after_its_lifetime() -> None:
    harness = ScalerHarness(SIX).having("a", Prefill=3, Decode=3)
    await refused(harness, harness.ask("a", "up", Decode=4))
    harness.clock[0] += 360
    assert (await refused(harness, harness.ask("a", "down", Prefill=2)))[0] == "BudgetFloor"
    await harness.resuming.check()
    assert list(harness.intents("a")) == ["Prefill"]


@pytest.mark.parametrize("broken", [1, 2, 3, 4])
@pytest.mark.parametrize("adapters", [True, False])
async def test_an_interrupted_transfer_is_completed(broken: int, adapters: bool) -> None:
    harness = ScalerHarness(TWELVE)
    for name in ("a", "b"):
        harness.graph(name, adapters=adapters, Prefill=3, Decode=3)
    await refused(harness, harness.ask("b", "up", Decode=4))
    harness.kube.breaks = broken
    command = harness.ask("a", "down", Prefill=2)
    try:
        await harness.scaling.carry_out(command)
    except Unavailable:
        # The scaler dies. NATS redelivers the command to another one.
        other = harness.again()
        await other.resuming.check()
        answer = await other.scaling.carry_out(command)
        assert "Prefill 3 -> 2" in answer.message
        await other.resuming.check()
    else:
        assert broken > 2
    assert (harness.replicas("a"), harness.replicas("b")) == ({"Prefill": 2, "Decode": 3}, {"Prefill": 3, "Decode": 4})
    assert (harness.intents("a"), harness.intents("b")) == ({}, {})


@pytest.mark.parametrize("adapters", [True, False])
async def test_fewer_replicas_than_grove_starts_together_are_rejected_and_free_no_gpus(adapters: bool) -> None:
    harness = ScalerHarness(Scaler(limits=FREE, budgets=(Budget(name="all", max_gpus=6),))).having(
        "a", adapters=adapters, Decode=4
    )
    harness.graph("b", adapters=adapters, Decode=2)
    harness.on_grove("a", Decode=3)
    reason, words = await refused(harness, harness.ask("a", Decode=1))
    assert (reason, "Decode: 1 replicas are fewer than the 3 of minAvailable" in words) == ("InvalidCommand", True)
    assert (await refused(harness, harness.ask("b", Decode=5)))[0] == "BudgetCeiling"
    assert harness.replicas("a") == {"Decode": 4}


async def test_a_redelivered_command_is_not_carried_out_again() -> None:
    harness = ScalerHarness(Scaler(limits=FREE)).having("a", Prefill=1, Decode=1)
    first = await harness.scaling.carry_out(harness.ask("a", "one", Decode=3))
    await harness.scaling.carry_out(harness.ask("a", "two", Decode=2))
    other = harness.again()
    assert await other.scaling.carry_out(harness.ask("a", "one", Decode=3)) == Answered(
        "Applied", "the command was already carried out"
    )
    assert await other.scaling.carry_out(harness.ask("a", "two", Decode=2)) == Answered("Applied", "Decode 3 -> 2")
    assert first.message == "Decode 1 -> 3"
    assert harness.replicas("a")["Decode"] == 2
    assert len(harness.kube.writes) == 2


async def test_a_retried_command_does_not_undo_a_newer_one_of_the_same_requester() -> None:
    harness = ScalerHarness(Scaler(limits=FREE)).having("a", Decode=1)
    await harness.scaling.carry_out(harness.ask("a", "new", requester="planner", sent="2026-01-01T00:00:05Z", Decode=3))
    late = harness.ask("a", "late", requester="planner", sent="2026-01-01T00:00:04.999", Decode=5)
    assert await refused(harness, late) == ("Superseded", "Decode: a newer command of planner requested 3 replicas")
    # Timestamps of other requesters do not count.
    assert (await harness.scaling.carry_out(replace(late, requester="user"))).reason == "Applied"


@pytest.mark.parametrize(
    ("newer", "words"),
    [({"withdraw": True}, "withdrew"), ({}, "requested 1 replica"), ({"withdraw": True, "targets": ()}, "withdrew")],
)
async def test_a_retried_command_is_older_than_one_that_wrote_nothing(newer: dict[str, Any], words: str) -> None:
    harness = ScalerHarness(Scaler(limits=FREE)).having("a", Decode=1)
    later = harness.ask("a", "new", requester="planner", sent="2026-01-01T00:00:05Z", Decode=1)
    assert (await harness.scaling.carry_out(replace(later, **newer))).reason == "Unchanged"
    late = harness.ask("a", "late", requester="planner", sent="2026-01-01T00:00:04Z", Decode=5)
    assert await refused(harness, late) == ("Superseded", f"Decode: a newer command of planner {words}")
    assert harness.replicas("a")["Decode"] == 1


async def test_a_late_command_does_not_replace_the_latest_one() -> None:
    harness = ScalerHarness(Scaler(limits=FREE)).having("a", Decode=1)
    first = harness.ask("a", "first", requester="planner", sent="2026-01-01T00:00:01Z", Decode=3)
    latest = harness.ask("a", "latest", requester="planner", sent="2026-01-01T00:00:05Z", Decode=1)
    await harness.scaling.carry_out(first)
    adapter = harness.kube.objects[DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.id, ObjectKey("team", "a-decode")]
    harness.kube.put({**adapter, "spec": {**adapter["spec"], "replicas": 1}})
    harness.read()
    assert (await harness.scaling.carry_out(latest)).reason == "Unchanged"
    assert (await harness.scaling.carry_out(first)).reason == "Applied"
    withdrawn = replace(latest, command="w", targets=(), sent="2026-01-01T00:00:02Z", withdraw=True)
    assert (await harness.scaling.carry_out(withdrawn)).reason == "Unchanged"
    late = harness.ask("a", "late", requester="planner", sent="2026-01-01T00:00:04Z", Decode=5)
    assert (await refused(harness, late))[0] == "Superseded"


async def test_commands_of_other_requesters_do_not_evict_the_latest_one() -> None:
    harness = ScalerHarness(Scaler(limits=FREE)).having("a", Decode=1).having("b", Prefill=1, Decode=1)
    later = harness.ask("a", "new", requester="planner", sent="2026-01-01T00:00:05Z", Decode=1)
    await harness.scaling.carry_out(later)
    for number in range(2 * last_commands._REMEMBERED):
        await harness.scaling.carry_out(
            replace(harness.ask("b", "w", requester=str(number)), targets=(), withdraw=True)
        )
    late = harness.ask("a", "late", requester="planner", sent="2026-01-01T00:00:04Z", Decode=5)
    assert (await refused(harness, late))[0] == "Superseded"


async def test_a_dry_run_makes_no_command_outdated() -> None:
    harness = ScalerHarness(Scaler(limits=FREE)).having("a", Decode=1)
    trial = harness.ask("a", "trial", requester="planner", sent="2026-01-01T00:00:05Z", Decode=3)
    await harness.scaling.carry_out(replace(trial, dry_run=True))
    asked = harness.ask("a", "late", requester="planner", sent="2026-01-01T00:00:04Z", Decode=5)
    assert (await harness.scaling.carry_out(asked)).reason == "Applied"


async def test_commands_are_accepted_again_after_a_clock_far_ahead_was_corrected() -> None:
    harness = ScalerHarness(Scaler(limits=FREE)).having("a", Decode=1)
    await harness.scaling.carry_out(harness.ask("a", "one", requester="planner", sent="2999-01-01T00:00:00Z", Decode=3))
    now = harness.ask("a", "two", requester="planner", sent="2027-01-15T08:00:01Z", Decode=5)
    assert (await harness.scaling.carry_out(now)).reason == "Applied"


async def test_a_decision_is_repeated_if_its_inputs_changed_before_the_write() -> None:
    harness = ScalerHarness(Scaler(limits=FREE, budgets=(Budget(name="six", max_gpus=6),)))
    harness.graph("a", adapters=False, Prefill=1, Decode=3)

    def another_user() -> None:
        key = (DYNAMO_GRAPH_DEPLOYMENTS.id, ObjectKey("team", "a"))
        graph = {**harness.kube.objects[key]}
        components = [{**each, "replicas": 3} for each in graph["spec"]["components"]]
        harness.kube.put({**graph, "spec": {"components": components}})

    harness.kube.before_write = another_user
    assert (await refused(harness, harness.ask("a", Decode=5)))[0] == "BudgetCeiling"
    assert harness.replicas("a") == {"Prefill": 3, "Decode": 3}


async def test_each_component_of_a_command_gets_its_own_event() -> None:
    harness = ScalerHarness(Scaler(limits=ScalingLimits(down=Direction(cooldown=600)))).having("a", Prefill=1, Decode=1)
    await harness.scaling.carry_out(harness.ask("a", "up", Prefill=4, Decode=4))
    await harness.scaling.carry_out(harness.ask("a", "down", Prefill=2, Decode=2))
    harness.clock[0] += 360
    await harness.resuming.check()
    expired = harness.reported.identities[-2:]
    assert [command for _, command, _ in expired] == ["down", "down"]
    assert len(set(expired)) == 2
    inputs = [data.components for _, _, data in harness.reported.events[-2:]]
    assert [(each.current, each.requested, each.allowed, each.reason) for (each,) in inputs] == [
        (4, 2, 4, "Expired")
    ] * 2


async def test_a_repeated_intent_is_not_written_each_time() -> None:
    harness = ScalerHarness(SIX).having("a", Prefill=3, Decode=3)
    for number in range(60):
        await refused(harness, harness.ask("a", f"up-{number}", Decode=4))
        harness.clock[0] += 5
    assert len(harness.kube.writes) <= 5
    assert (await harness.scaling.carry_out(harness.ask("a", "down", Prefill=2))).reason == "Paired"


async def test_a_repeated_held_request_is_not_written_each_time_if_other_components_are_done() -> None:
    harness = ScalerHarness(Scaler(limits=ScalingLimits(down=Direction(cooldown=600)))).having("a", Prefill=1, Decode=1)
    await harness.scaling.carry_out(harness.ask("a", "up", Decode=4))
    for number in range(10):
        held = await harness.scaling.carry_out(harness.ask("a", f"down-{number}", Prefill=1, Decode=2))
        assert held.reason == "Held"
    assert len(harness.kube.writes) == 2


async def test_advisory_and_dry_runs_report_and_write_nothing() -> None:
    advisory = ScalerHarness(SIX.model_copy(update={"advisory": True})).having("a", Prefill=3, Decode=3)
    answer = await advisory.scaling.carry_out(advisory.ask("a", Prefill=2, Decode=4))
    assert answer == Answered("Advisory", "would scale: Prefill 3 -> 2; Decode 3 -> 4")
    assert (await refused(advisory, advisory.ask("a", "c2", Decode=4)))[0] == "BudgetCeiling"
    trial = ScalerHarness(SIX).having("a", Prefill=3, Decode=3)
    dry = replace(trial.ask("a", Prefill=2, Decode=4), dry_run=True)
    assert (await trial.scaling.carry_out(dry)).reason == "DryRun"
    assert (await refused(trial, replace(trial.ask("a", "c2", Decode=4), dry_run=True)))[0] == "BudgetCeiling"
    for harness in (advisory, trial):
        assert harness.kube.writes == []
        assert [event for event, _ in harness.reported.of("a")] == ["scale-advised", "scale-refused"]


async def test_a_graph_that_cannot_be_written_does_not_block_others() -> None:
    harness = ScalerHarness(Scaler(limits=ScalingLimits(down=Direction(cooldown=60))))
    for name in ("a", "b"):
        harness.graph(name, adapters=False, Decode=1)
        await harness.scaling.carry_out(harness.ask(name, f"{name}-up", Decode=4))
        await harness.scaling.carry_out(harness.ask(name, f"{name}-down", Decode=2))
    harness.clock[0] += 60
    harness.kube.refused = "dynamographdeployments a"
    with pytest.raises(KubeError):
        await harness.resuming.check()
    assert (harness.replicas("a")["Decode"], harness.replicas("b")["Decode"]) == (4, 2)


async def test_a_write_that_the_cluster_rejects_is_reported_with_the_writes_before_it() -> None:
    harness = ScalerHarness(TWELVE)
    for name in ("a", "b"):
        harness.graph(name, adapters=False, Prefill=3, Decode=3)
    await refused(harness, harness.ask("a", "down", Prefill=2))
    harness.kube.refused = "dynamographdeployments b"
    reason, message = await refused(harness, harness.ask("b", "up", Decode=4))
    assert reason == "WriteRefused"
    assert "written before that: team/a Prefill 3 -> 2" in message
    assert harness.reported.of("b") == [("scale-refused", "WriteRefused")]
    assert [each.requested for each in harness.reported.events[-1][2].components] == [4, 2]


async def test_a_write_that_the_cluster_rejects_is_not_retried() -> None:
    harness = ScalerHarness(Scaler(limits=ScalingLimits(up=Direction(step=2, cooldown=30)))).having("a", Decode=1)
    harness.kube.refused = "dynamographdeploymentscalingadapters a-decode"
    assert (await refused(harness, harness.ask("a", Decode=6)))[0] == "WriteRefused"
    harness.kube.refused = ""
    await harness.resuming.check()
    assert (harness.replicas("a")["Decode"], harness.intents("a")) == (1, {})


async def test_a_rejection_before_any_decision_is_reported_only_by_the_owner_of_the_graph() -> None:
    harness = ScalerHarness(Scaler(managed=("team/a",))).having("a", Decode=1)
    harness.graph("b", Decode=1)
    await refused(harness, harness.ask("a", Encode=2))
    await refused(harness, harness.ask("b", Decode=2))
    assert (harness.reported.of("a"), harness.reported.of("b")) == ([("scale-refused", "UnknownComponent")], [])


async def test_malicious_annotations_are_ignored() -> None:
    harness = ScalerHarness(Scaler(limits=FREE)).having("a", adapters=False, Decode=1)
    deep = '{"Decode": {"replicas": 2, "current": 1, "at": 1, "command": "c", "x": ' + "[" * 5000 + "]" * 5000 + "}}"
    below = '{"Decode": {"replicas": -2, "current": 1, "before": 1, "at": 1800000000, "command": "c", "held": true}}'
    for text in (deep, below, "[", "{}"):
        harness.note("a", **{SCALING_INTENTS: text, LAST_SCALED: text})
        await harness.resuming.check()
        assert harness.replicas("a")["Decode"] == 1
    assert (await harness.scaling.carry_out(harness.ask("a", Decode=2))).reason == "Applied"


async def test_commands_for_graphs_of_other_owners_are_rejected() -> None:
    harness = ScalerHarness(Scaler(managed=("team/a",))).having("a", Decode=1)
    harness.graph("b", Decode=1)
    assert (await refused(harness, harness.ask("b", Decode=2)))[0] == "NotManaged"
    elsewhere = replace(harness.ask("a", Decode=2), graph=ObjectKey("elsewhere", "a"))
    assert (await refused(ScalerHarness(Scaler()), elsewhere))[0] == "NotManaged"
    harness.cache.put(HORIZONTAL_POD_AUTOSCALERS, AUTOSCALER)
    reason, message = await refused(harness, harness.ask("a", Decode=2))
    assert reason == "HasAutoscaler"
    assert "HorizontalPodAutoscaler hpa scales Decode" in message


async def test_commands_for_another_generation_or_a_missing_graph_are_rejected() -> None:
    harness = ScalerHarness(Scaler()).having("a", adapters=False, Decode=1)
    stale = replace(harness.ask("a", Decode=2), expected_generation=7)
    assert await refused(harness, stale) == (
        "StaleGeneration",
        "team/a is at generation 1, not 7: read the graph again, and send a new command",
    )
    assert (await refused(harness, harness.ask("b", Decode=2)))[0] == "NotFound"
    # The cache may not have received a new graph yet.
    fresh = harness.again()
    fresh.cache.take(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("team", "a"), None, Version("", 2**60, ""))
    assert (await fresh.scaling.carry_out(replace(stale, expected_generation=1))).reason == "Applied"
    # Nor its newest generation.
    another = replace(stale, command="another", expected_generation=2)
    assert (await harness.scaling.carry_out(another)).reason == "Unchanged"


async def test_a_command_for_a_deleted_graph_does_not_scale_its_successor() -> None:
    """Commands wait while the scaler or the API server is away, and a user may recreate a graph meanwhile."""
    harness = ScalerHarness(Scaler())
    harness.graph("a", adapters=False, Decode=1)
    assert (await harness.scaling.carry_out(replace(harness.ask("a", Decode=2), uid="uid-a"))).reason == "Applied"
    earlier = replace(harness.ask("a", Decode=9), uid="uid-of-before")
    refusal = ("NotFound", "DynamoGraphDeployment team/a has since been deleted and recreated")
    assert await refused(harness, earlier) == refusal
    assert await refused(harness, replace(earlier, withdraw=True, requester="planner")) == refusal
    assert harness.replicas("a") == {"Decode": 2}
    # The deletion may reach the cache late: the API server decides.
    late = harness.again()
    late.change("a", lambda graph: graph["metadata"].update(uid="uid-new"))
    late.cache.take(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("team", "a"), None, Version("", 2**60, ""))
    late.cache.take(
        DYNAMO_GRAPH_DEPLOYMENTS,
        ObjectKey("team", "a"),
        harness.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("team", "a")),
        Version("uid-a", 1, ""),
    )
    assert (await late.scaling.carry_out(replace(harness.ask("a", Decode=3), uid="uid-new"))).reason == "Applied"
    assert await refused(late, replace(harness.ask("a", Decode=9), uid="uid-a")) == refusal


async def test_an_invalid_policy_rejects_commands() -> None:
    harness = ScalerHarness(Scaler()).having("a", Decode=1)
    harness.note("a", **{SCALING_POLICY: "{Decode: {max: -1}}"})
    reason, message = await refused(harness, harness.ask("a", Decode=2))
    assert reason == "InvalidPolicy"
    assert "Decode.max" in message


async def test_fewer_replicas_than_the_minimum_are_rejected() -> None:
    harness = ScalerHarness(Scaler()).having("a", Decode=1)
    assert (await refused(harness, harness.ask("a", Decode=0)))[0] == "BelowMinimum"


async def test_one_half_of_a_transfer_waits_for_the_other_half() -> None:
    harness = ScalerHarness(
        SIX.model_copy(update={"limits": ScalingLimits(up=Direction(cooldown=60), down=Direction())})
    )
    harness.graph("a", Prefill=3, Decode=3)
    await harness.scaling.carry_out(harness.ask("a", "first", Prefill=2, Decode=4))
    held = await harness.scaling.carry_out(harness.ask("a", "second", Prefill=1, Decode=5))
    assert held.reason == "Held"
    assert harness.replicas("a") == {"Prefill": 2, "Decode": 4}
    harness.clock[0] += 60
    await harness.again().resuming.check()
    assert harness.replicas("a") == {"Prefill": 1, "Decode": 5}


async def test_answers_are_read_from_memory_and_from_the_stream() -> None:
    bus = MemoryBus()
    await bus.declare(streams.EVENTS)
    answers = Answers(bus, "c")
    assert await answers.find("team", "one") is None
    answers.keep("team", "one", Answered("Applied", "so"))
    assert await answers.find("team", "one") == Answered("Applied", "so")
    # An answer to a client of another namespace is not an answer for this one.
    assert await answers.find("other", "one") is None
    publisher = EventPublisher(bus, "c")
    for name, event, reason in (("two", "completed", "Held"), ("three", "failed", "NotFound")):
        publisher.publish(
            kind=COMMAND,
            obj={"metadata": {"name": name, "namespace": "team"}},
            event=event,
            data=CommandResult(service="scaler", verb="scale", reason=reason, message="so"),
            causation_id=name,
        )
    assert await publisher.flush(5)
    assert await answers.find("team", "two") == Answered("Held", "so")
    result = await answers.find("team", "three")
    assert isinstance(result, CommandRefusedError)
    assert (result.reason, str(result)) == ("NotFound", "so")
    assert await answers.find("other", "two") is None
    bus.disconnect()
    assert await answers.find("team", "two") is None


async def test_a_remembered_rejection_holds_no_stack_frames() -> None:
    """An error holds the frames that raised it, and they hold whole graphs: much memory for two thousand errors."""
    answers = Answers(MemoryBus(), "c")

    async def refuse() -> weakref.ref[ScalerHarness]:
        harness = ScalerHarness(Scaler()).having("a", Decode=1)
        try:
            await harness.scaling.carry_out(harness.ask("a", Nothing=2))
        except CommandRefusedError as error:
            answers.keep("team", "one", error)
        return weakref.ref(harness)

    harness = await refuse()
    gc.collect()
    assert harness() is None
    # Raising the remembered error must not attach frames to it.
    for _ in range(2):
        known = await answers.find("team", "one")
        assert isinstance(known, CommandRefusedError)
        assert (known.reason, known.__traceback__) == ("UnknownComponent", None)
        with pytest.raises(CommandRefusedError):
            raise known


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.dictionaries(st.sampled_from(["Prefill", "Decode"]), st.integers(0, 9), min_size=1),
        st.integers(0, 120),
        st.integers(0, 4),
    ),
    max_size=12,
)


@examples(20)
@given(steps=STEPS, adapters=st.booleans(), gpus=st.tuples(st.integers(1, 3), st.integers(1, 3)))
async def test_no_sequence_of_commands_and_interruptions_breaks_the_budget(
    steps: list[tuple[str, dict[str, int], int, int]], adapters: bool, gpus: tuple[int, int]
) -> None:
    total = 4 * sum(gpus)
    harness = ScalerHarness(
        Scaler(
            limits=ScalingLimits(min=0, down=Direction(cooldown=30)),
            budgets=(Budget(name="both", min_gpus=total - 2, max_gpus=total + 1),),
        )
    )
    each = dict(zip(("a", "b"), gpus, strict=True))
    for name, count in each.items():
        harness.graph(name, adapters=adapters, gpus=count, Prefill=2, Decode=2)

    def check() -> None:
        used = sum(count * sum(harness.replicas(name).values()) for name, count in each.items())
        assert used <= total + 1
        if not harness.kube.breaks:
            assert used >= total - 2 - max(gpus)

    for number, (name, desired, wait, broken) in enumerate(steps):
        harness.clock[0] += wait
        command = harness.ask(name, f"c{number}", "", "", **desired)
        harness.kube.breaks = broken
        for attempt in range(2):
            try:
                await harness.resuming.check()
                await harness.scaling.carry_out(command)
            except CommandRefusedError:
                break
            except Unavailable:
                assert attempt == 0
                used = sum(count * sum(harness.replicas(name).values()) for name, count in each.items())
                assert used <= total + 1
                harness = harness.again()
            else:
                break
        harness.kube.breaks = 0
        await harness.resuming.check()
        check()
    assert harness.clock[0] >= START


def test_pools_follow_the_adapters_of_their_graph() -> None:
    harness = ScalerHarness(Scaler()).having("a", Prefill=2, Decode=3)
    key = ObjectKey("team", "a-decode")
    adapter = harness.cache.get(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, key)
    assert adapter is not None
    graph = harness.view.graph(ObjectKey("team", "a"))
    assert graph is not None
    pools = {pool.key.component: (pool.current, pool.gpus, pool.adapter) for pool in harness.view.pools(graph)}
    assert pools == {"Prefill": (2, 1, "a-prefill"), "Decode": (3, 1, "a-decode")}
    harness.cache.put(
        DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
        harness.kube.put({**adapter, "spec": {**adapter["spec"], "replicas": 7}}),
    )
    assert {pool.key.component: pool.current for pool in harness.view.pools(graph)} == {"Prefill": 2, "Decode": 7}


@pytest.mark.parametrize("adapters", [False, True], ids=["graph", "adapter"])
async def test_a_404_that_names_no_object_removes_nothing_from_the_cache(adapters: bool) -> None:
    """A gateway may answer so, or an API server that does not know the type yet. NATS redelivers the command."""
    harness = ScalerHarness(Scaler(limits=FREE)).having("a", adapters=adapters, Decode=1)

    def no_page(*_: object) -> Any:
        raise NotServed(404, "", "404 page not found")

    harness.kube.before_write = no_page
    harness.kube.get = no_page  # type: ignore[method-assign,assignment]
    with pytest.raises(NotServed):
        await harness.scaling.carry_out(harness.ask("a", Decode=2))
    resource, name = (
        (DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, "a-decode") if adapters else (DYNAMO_GRAPH_DEPLOYMENTS, "a")
    )
    assert harness.cache.get(resource, ObjectKey("team", name)) is not None
