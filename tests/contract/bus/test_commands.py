"""Commands on every bus: acknowledged when answered, retried on failure, buried after the last delivery, never lost."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from dynamo_shared.bus import Bus, EventPublisher, metrics, streams
from dynamo_shared.bus.commands import (
    Answered,
    CommandConsumer,
    CommandRefusedError,
    CommandSender,
    Handler,
    consumer_name,
)
from dynamo_shared.bus.errors import BusError
from dynamo_shared.bus.protocol import Ack, Message, OutgoingMessage, Start
from dynamo_shared.wire import cloudevents, subjects
from dynamo_shared.wire.specifications.platform import CommandResult
from dynamo_shared.wire.specifications.scaling import ScaleData, ScaleTarget

from tests.building.tasks import in_background
from tests.building.waiting import until

ASK = ScaleData(graph_deployment="llama", targets=[ScaleTarget(component="Decode", replicas=3)])


@asynccontextmanager
async def serving(bus: Bus, handler: Handler, **options: Any) -> AsyncIterator[CommandSender]:
    publisher = EventPublisher(bus, "c")
    # Longer than a busy machine may pause, because the tests count deliveries.
    settings = {"ack_wait": 20.0, "delays": (0.05,), "max_deliveries": 3, **options}
    consumer = CommandConsumer(bus, "c", "scaler", {"scale": handler}, publisher, **settings)
    await bus.declare(streams.COMMANDS, streams.EVENTS, streams.DEAD_LETTERS)
    async with in_background(publisher.run()), in_background(consumer.run()):
        yield CommandSender(bus, "c")


async def send_and_wait(sender: CommandSender, request: str = "r1") -> tuple[bool, CommandResult]:
    return await sender.ask("scaler", "scale", "ns", ASK, request=request, timeout=60)


async def done(_: cloudevents.Event, __: ScaleData) -> str:
    """A handler that carries out every command."""
    return "done"


async def until_done(bus: Bus) -> None:
    """Until the work queue is empty."""
    async with asyncio.timeout(60):
        while (await bus.stream_state(streams.COMMANDS)).messages:
            await asyncio.sleep(0.02)


async def letters(bus: Bus) -> list[Message]:
    subscription = await bus.subscribe(streams.DEAD_LETTERS, ["dynamo.dlq.v1.>"], start=Start.ALL)
    results: list[Message] = []
    async with asyncio.timeout(60):
        async for item in subscription:
            if not isinstance(item, Message):
                break
            results.append(item)
    await subscription.close()
    return results


async def test_a_command_is_carried_out_and_answered(bus: Bus) -> None:
    got: list[Any] = []

    async def handler(command: cloudevents.Event, data: ScaleData) -> str:
        got.append((command.type, data))
        return "done"

    async with serving(bus, handler) as sender:
        completed, result = await send_and_wait(sender)
    assert completed
    assert (result.service, result.verb, result.message, result.deliveries) == ("scaler", "scale", "done", 1)
    assert got == [("com.nvidia.dynamo.command.scale.v1", ASK)]
    assert (await bus.stream_state(streams.COMMANDS)).messages == 0


async def test_an_answer_may_have_an_outcome_and_the_subject_determines_the_namespace(bus: Bus) -> None:
    places: list[str] = []

    async def handler(command: cloudevents.Event, _: ScaleData) -> Answered:
        places.append(command.source)
        return Answered("Held", "later")

    async with serving(bus, handler) as sender:
        completed, result = await send_and_wait(sender)
        # A user who may send to one namespace claims another one.
        foreign = sender.command("scaler", "scale", "other", ASK, "r2")
        subject = subjects.command_subject("c", "ns", "scaler", "scale")
        await bus.publish(subject, cloudevents.encode(foreign), headers=cloudevents.mirrored_headers(foreign))
        await until_done(bus)
    assert (completed, result.reason, result.message) == (True, "Held", "later")
    assert places == ["/clusters/c/namespaces/ns"] * 2


async def test_repeated_requests_with_one_id_run_once(bus: Bus) -> None:
    count = 0

    async def handler(_: cloudevents.Event, __: ScaleData) -> None:
        nonlocal count
        count += 1

    async with serving(bus, handler) as sender:
        await send_and_wait(sender)
        await send_and_wait(sender)
        await send_and_wait(sender, "r2")
    assert count == 2


async def test_a_failed_command_is_retried(bus: Bus) -> None:
    tries = 0

    async def handler(_: cloudevents.Event, __: ScaleData) -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise RuntimeError("not yet")

    async with serving(bus, handler) as sender:
        completed, result = await send_and_wait(sender)
    assert (completed, result.deliveries, tries) == (True, 3, 3)


async def test_a_command_becomes_a_dead_letter_after_its_last_delivery(bus: Bus) -> None:
    async def handler(_: cloudevents.Event, __: ScaleData) -> None:
        raise RuntimeError("never")

    async with serving(bus, handler) as sender:
        completed, result = await send_and_wait(sender)
    assert (completed, result.reason, result.message, result.deliveries) == (False, "RetriesExhausted", "never", 3)
    [letter] = await letters(bus)
    assert letter.subject == "dynamo.dlq.v1.c.ns.scaler.scale"
    assert (letter.headers["reason"], letter.headers["error"]) == ("RetriesExhausted", "never")
    assert cloudevents.decode(letter.payload).data["graphDeployment"] == "llama"
    assert (await bus.stream_state(streams.COMMANDS)).messages == 0


async def test_a_refused_command_is_answered_and_not_dead_lettered(bus: Bus) -> None:
    async def handler(_: cloudevents.Event, __: ScaleData) -> None:
        raise CommandRefusedError("NotFound", "there is no such graph")

    async with serving(bus, handler) as sender:
        completed, result = await send_and_wait(sender)
    assert (completed, result.reason, result.deliveries) == (False, "NotFound", 1)
    assert await letters(bus) == []


@pytest.mark.parametrize("payload", [b"{", b'{"data": 1}'])
async def test_an_unreadable_command_becomes_a_dead_letter_at_once(bus: Bus, payload: bytes) -> None:
    async def handler(_: cloudevents.Event, __: ScaleData) -> None:
        raise AssertionError

    async with serving(bus, handler):
        await bus.publish("dynamo.cmd.v1.c.ns.scaler.scale", payload)
        await bus.publish("dynamo.cmd.v1.c.ns.scaler.unheard-of", b"{}")
        await until_done(bus)
    assert sorted(letter.headers["reason"] for letter in await letters(bus)) == ["InvalidCommand", "UnknownCommand"]
    # Each label value creates a time series, and a sender can invent any number of verbs.
    assert {labels[1] for labels in metrics.COMMANDS_HANDLED._metrics} <= {"scale", "unknown"}


async def test_a_long_command_is_not_redelivered(bus: Bus) -> None:
    count = 0

    async def handler(_: cloudevents.Event, __: ScaleData) -> None:
        nonlocal count
        count += 1
        await asyncio.sleep(4.0)

    async with serving(bus, handler, ack_wait=3.0) as sender:
        completed, result = await send_and_wait(sender)
    assert (completed, result.deliveries, count) == (True, 1, 1)


async def test_a_slow_command_does_not_block_others(bus: Bus) -> None:
    release = asyncio.Event()

    async def handler(command: cloudevents.Event, data: ScaleData) -> None:
        if data.reason == "slow":
            await release.wait()

    async with serving(bus, handler) as sender:
        slow = dataclasses.asdict(Slow())
        waiting = asyncio.create_task(sender.ask("scaler", "scale", "ns", slow, request="slow", timeout=60))
        assert (await send_and_wait(sender))[0]
        release.set()
        assert (await waiting)[0]


@dataclasses.dataclass
class Slow:
    graphDeployment: str = "llama"  # noqa: N815 - as on the wire
    targets: list[dict[str, int]] = dataclasses.field(default_factory=list)
    reason: str = "slow"


async def test_a_command_in_progress_is_redelivered_at_once_when_its_receiver_stops(bus: Bus) -> None:
    """Otherwise each upgrade of the scaler would delay a graph by the ack wait."""
    started = asyncio.Event()

    async def hangs(_: cloudevents.Event, __: ScaleData) -> None:
        started.set()
        await asyncio.Event().wait()

    async with serving(bus, hangs, ack_wait=600) as sender:
        await sender.send("scaler", "scale", "ns", ASK, request="r1")
        await asyncio.wait_for(started.wait(), 60)
    async with serving(bus, done, ack_wait=600) as sender:
        completed, result = await send_and_wait(sender)
    assert (completed, result.deliveries) == (True, 2)


async def test_a_command_is_acknowledged_only_after_its_answer_is_stored(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a receiver was killed between execution and answer, the next one answers the sender."""
    answering = asyncio.Event()
    send = bus.send

    async def hangs(message: OutgoingMessage, **options: Any) -> asyncio.Future[Ack]:
        if message.subject.endswith(".completed"):
            answering.set()
            await asyncio.Event().wait()
        return await send(message, **options)

    with monkeypatch.context() as patched:
        patched.setattr(bus, "send", hangs)
        async with serving(bus, done, ack_wait=600) as sender:
            await sender.send("scaler", "scale", "ns", ASK, request="r1")
            await asyncio.wait_for(answering.wait(), 60)
    async with serving(bus, done, ack_wait=600) as sender:
        completed, result = await send_and_wait(sender)
    assert (completed, result.message, result.deliveries) == (True, "done", 2)


async def test_the_next_receiver_buries_a_command_whose_receivers_died(bus: Bus) -> None:
    await bus.declare(streams.COMMANDS, streams.DEAD_LETTERS)
    sender = CommandSender(bus, "c")

    async def handler(_: cloudevents.Event, __: ScaleData) -> None:
        await asyncio.Event().wait()

    identity = await sender.send("scaler", "scale", "ns", ASK, request="r")
    publisher = EventPublisher(bus, "c")
    for attempt in range(2):
        # The receiver dies with the command in progress: no answer, no nak.
        consumer = CommandConsumer(bus, "c", "scaler", {"scale": handler}, publisher, ack_wait=0.3, max_deliveries=2)
        delivered = await bus.consume(consumer._spec, prefetch=1)
        async with asyncio.timeout(60):
            await delivered.__anext__()
        if attempt == 0:
            await delivered.close()
    # Someone must still pull, or the server has no reason to notice that the last ack wait has expired.
    async with serving(bus, handler, ack_wait=0.3, max_deliveries=2):
        await until_done(bus)
    [letter] = await letters(bus)
    assert letter.headers["reason"] == "ReceiverDied"
    assert letter.headers["ce-id"] == identity
    await delivered.close()


async def test_a_waiting_command_goes_to_any_free_receiver(bus: Bus) -> None:
    # A command that one receiver prefetches is redelivered again and again, and buried without having run.
    await bus.declare(streams.COMMANDS)
    sender = CommandSender(bus, "c")
    first = await sender.send("scaler", "scale", "ns", ASK, request="first")
    started = asyncio.Event()

    async def hangs(command: cloudevents.Event, _: ScaleData) -> None:
        assert command.id == first
        started.set()
        await asyncio.Event().wait()

    async with serving(bus, hangs, concurrency=1):
        async with asyncio.timeout(60):
            await started.wait()
        await sender.send("scaler", "scale", "ns", ASK, request="second")
        async with serving(bus, done) as other:
            completed, result = await send_and_wait(other, "second")
    assert (completed, result.deliveries) == (True, 1)


def hostile(id_: str, data: bytes) -> bytes:
    head = f'{{"specversion": "1.0", "id": "{id_}", "source": "s", "type": "t", "subject": "s", "time": "now", "data": '
    return head.encode() + data + b"}"


@pytest.mark.parametrize(
    "payload",
    [
        hostile("", b"{}"),
        hostile("i" * 5000, b"{}"),
        hostile("deep", b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b"}"),
        # As large as the server accepts: a message that repeats it would be too large.
        hostile("large", b'{"graphDeployment": "g", "targets": [], "reason": "' + b"r" * ((1 << 20) - 300) + b'"}'),
        b"x" * ((1 << 20) - 16),
    ],
    ids=["no id", "long id", "deep", "large", "large and unreadable"],
)
async def test_malformed_commands_do_not_block_others(bus: Bus, payload: bytes) -> None:
    async def handler(_: cloudevents.Event, data: ScaleData) -> str:
        if data.reason:
            raise CommandRefusedError("No", data.reason)
        return "done"

    async with serving(bus, handler) as sender:
        await bus.publish(subjects.command_subject("c", "ns", "scaler", "scale"), payload)
        completed, _ = await send_and_wait(sender)
        await until_done(bus)
        assert completed
        assert (await send_and_wait(sender, "r2"))[0]


async def test_expectation_headers_of_the_sender_are_not_copied_to_the_dead_letter(bus: Bus) -> None:
    """nats-py adds them when the stream is given: the server would refuse them for the stream of dead letters."""

    demands = {"Nats-Expected-Stream": streams.COMMANDS.name, "Nats-Expected-Last-Sequence": "0", "mine": "x"}
    async with serving(bus, done) as sender:
        await bus.publish(subjects.command_subject("c", "ns", "scaler", "scale"), b"unreadable", headers=demands)
        await until_done(bus)
        assert (await send_and_wait(sender))[0]
    [letter] = await letters(bus)
    assert (letter.payload, letter.headers["mine"]) == (b"unreadable", "x")


async def test_commands_continue_when_one_cannot_be_buried(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    await bus.declare(streams.COMMANDS, streams.DEAD_LETTERS)
    asked = 0

    async def read(*_: object) -> Message | None:
        nonlocal asked
        asked += 1
        raise BusError("the server sent what no server sends")

    monkeypatch.setattr(bus, "read", read)
    async with serving(bus, done) as sender:
        advisory = b'{"stream_seq": 1, "deliveries": 5}'
        name = consumer_name("c", "scaler")
        await bus.publish(f"{streams.ADVISORY_PREFIX}.{name}", advisory)
        await until(lambda: asked)
        assert (await send_and_wait(sender))[0]
