"""`dynamoctl scale`: the command that it sends, and how it prints the answer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import pytest
from dynamo_ctl.commands.scale import ScaleOptions, by_api, command
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.remote import Remote
from dynamo_shared.bus import EventPublisher, streams
from dynamo_shared.bus.commands import Answered, CommandConsumer, CommandRefusedError, Handler
from dynamo_shared.wire import cloudevents
from dynamo_shared.wire.specifications.scaling import ScaleData

from tests.building.memory_bus import MemoryBus
from tests.building.tasks import in_background


@asynccontextmanager
async def platform(handler: Handler) -> AsyncIterator[MemoryBus]:
    bus = MemoryBus()
    await bus.declare(streams.STATE, streams.COMMANDS, streams.EVENTS, streams.DEAD_LETTERS)
    publisher = EventPublisher(bus, "c")
    consumer = CommandConsumer(bus, "c", "scaler", {"scale": handler}, publisher)
    async with in_background(publisher.run()), in_background(consumer.run()):
        yield bus


REPLICAS = [("Decode", 3)]
QUERY = ScaleOptions("llama", ["Decode=3"], dry_run=True, reason="to see", generation=7, request="mine", timeout=10)


async def test_a_scale_command_is_sent_and_its_answer_is_printed() -> None:
    got: list[ScaleData] = []

    async def handler(_: cloudevents.Event, data: ScaleData) -> Answered:
        got.append(data)
        return Answered("DryRun", "would be done: Decode 1 -> 3")

    async with platform(handler) as bus:
        completed, result = await command.ask(bus, "c", "ns", QUERY, REPLICAS)
        again = await command.ask(bus, "c", "ns", QUERY, REPLICAS)
    assert (completed, result.reason, result.message) == (True, "DryRun", "would be done: Decode 1 -> 3")
    assert again == (completed, result)
    (data,) = got
    assert (data.graph_deployment, data.reason, data.expected_generation, data.dry_run) == (
        "llama",
        "to see",
        "7",
        True,
    )
    assert [(each.component, each.replicas) for each in data.targets] == [("Decode", 3)]
    assert data.requester.startswith("dynamoctl/")


async def test_a_refusal_is_an_answer() -> None:
    async def handler(_: cloudevents.Event, __: ScaleData) -> None:
        raise CommandRefusedError("BudgetCeiling", "too many")

    async with platform(handler) as bus:
        completed, result = await command.ask(bus, "c", "ns", QUERY, REPLICAS)
    assert (completed, result.reason, result.message) == (False, "BudgetCeiling", "too many")


async def test_without_a_platform_or_an_answer_it_says_so() -> None:
    with pytest.raises(CtlError, match="never run") as caught:
        await command.ask(MemoryBus(), "c", "ns", QUERY, REPLICAS)
    assert caught.value.code is ExitCode.FAILED
    bus = MemoryBus()
    await bus.declare(streams.STATE, streams.COMMANDS, streams.EVENTS)
    with pytest.raises(CtlError, match="repeat it with --request mine") as caught:
        await command.ask(bus, "c", "ns", replace(QUERY, timeout=0.05), REPLICAS)
    assert caught.value.code is ExitCode.UNREACHABLE


@pytest.mark.parametrize("text", ["Decode", "Decode=", "=3", "Decode=-1", "Decode=1.5", "a b=1", "Decode=9999999999"])
def test_a_text_that_is_not_a_target_is_refused(text: str) -> None:
    with pytest.raises(CtlError, match="write COMPONENT=N") as caught:
        command.replicas([text])
    assert caught.value.code is ExitCode.USAGE


def test_a_target_is_a_component_and_a_number() -> None:
    assert command.replicas(["Decode=3", "prefill-2=0"]) == [("Decode", 3), ("prefill-2", 0)]


async def test_warnings_of_the_api_are_not_in_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    class Warned:
        def path(self, *parts: str, **_: str) -> str:
            return "/".join(parts)

        async def request(self, method: str, *_: Any) -> dict[str, Any]:
            graph = {"spec": {"components": [{"name": "Decode"}]}}
            return graph if method == "GET" else {"replicas": 3, "via": "graph", "warnings": ["deprecated"]}

    out: list[str] = []
    await by_api.scale(cast("Remote", Warned()), ScaleOptions("g", []), [("Decode", 3)], out.append, as_json=False)
    assert out == ["Decode has 3 replicas (written to the graph)"]
    assert capsys.readouterr().err == "warning: deprecated\n"
