"""What every bus does with published messages."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from dynamo_devcluster import NatsServer, Programs
from dynamo_shared.bus import Bus, NatsBus
from dynamo_shared.bus.errors import (
    BusClosedError,
    BusUnavailableError,
    MessageTooLargeError,
    StreamFullError,
    StreamNotFoundError,
    WrongSequenceError,
)
from dynamo_shared.bus.protocol import BusHealth, OutgoingMessage
from dynamo_shared.bus.streams import COMMANDS, EVENTS, STATE, Discard, StreamSpec

A = "dynamo.state.v1.c.pods.ns.a"
B = "dynamo.state.v1.c.pods.ns.b"


async def test_a_stored_message_is_acknowledged_with_its_sequence(bus: Bus) -> None:
    await bus.declare(STATE)
    first = await bus.publish(A, b"1")
    second = await bus.publish(B, b"2")
    assert (first.stream, first.sequence, first.duplicate) == ("DYNAMO_STATE", 1, False)
    assert second.sequence == 2


async def test_declaring_twice_changes_nothing(bus: Bus) -> None:
    await bus.declare(STATE, EVENTS)
    await bus.publish(A, b"1")
    await bus.declare(STATE, EVENTS)
    assert (await bus.stream_state(STATE)).messages == 1


async def test_declaring_updates_a_stream_that_differs(bus: Bus) -> None:
    await bus.declare(StreamSpec(name="DYNAMO_STATE", subjects=STATE.subjects, description="old", message_ttl=True))
    await bus.publish(A, b"1")
    await bus.publish(A, b"2")
    await bus.declare(STATE)
    await bus.publish(A, b"3")
    assert (await bus.stream_state(STATE)).messages == 1


async def test_publishing_without_a_stream_fails(bus: Bus) -> None:
    with pytest.raises(StreamNotFoundError):
        await bus.publish(A, b"1")
    with pytest.raises(StreamNotFoundError):
        await bus.stream_state(STATE)


async def test_the_same_message_id_is_stored_once(bus: Bus) -> None:
    await bus.declare(EVENTS)
    subject = "dynamo.evt.v1.c.ns.kind.name.ready"
    first = await bus.publish(subject, b"1", msg_id="x")
    again = await bus.publish(subject, b"1", msg_id="x")
    assert (again.sequence, again.duplicate) == (first.sequence, True)
    assert (await bus.stream_state(EVENTS)).messages == 1


async def test_a_state_subject_keeps_its_last_message(bus: Bus) -> None:
    await bus.declare(STATE)
    await bus.publish(A, b"1", headers={"uid": "u1"})
    await bus.publish(A, b"2", headers={"uid": "u2", "change": "modified"})
    last = await bus.last_message(STATE, A)
    assert last is not None
    assert (last.subject, last.payload, last.sequence, last.headers["uid"]) == (A, b"2", 2, "u2")
    assert await bus.last_message(STATE, B) is None
    assert (await bus.stream_state(STATE)).messages == 1


async def test_a_wrong_expected_sequence_is_rejected(bus: Bus) -> None:
    await bus.declare(STATE)
    first = await bus.publish(A, b"1", expected_last_subject_sequence=0)
    with pytest.raises(WrongSequenceError):
        await bus.publish(A, b"2", expected_last_subject_sequence=0)
    # Only the last sequence of the subject counts, not that of the stream.
    await bus.publish(B, b"other")
    await bus.publish(A, b"2", expected_last_subject_sequence=first.sequence)
    with pytest.raises(WrongSequenceError):
        await bus.publish(A, b"3", expected_last_subject_sequence=first.sequence)


async def test_sending_many_at_once(bus: Bus) -> None:
    await bus.declare(STATE)
    futures = [await bus.send(OutgoingMessage(f"dynamo.state.v1.c.pods.ns.p{n}", b"x")) for n in range(500)]
    acks = await asyncio.gather(*futures)
    assert [ack.sequence for ack in acks] == list(range(1, 501))


async def test_an_error_is_raised_by_the_future(bus: Bus) -> None:
    await bus.declare(STATE)
    good = await bus.send(OutgoingMessage(A, b"1", expected_last_subject_sequence=0))
    bad = await bus.send(OutgoingMessage(A, b"2", expected_last_subject_sequence=0))
    assert (await good).sequence == 1
    with pytest.raises(WrongSequenceError):
        await bad


async def test_a_message_with_a_time_to_live_expires(bus: Bus) -> None:
    await bus.declare(STATE)
    await bus.publish(A, b"", ttl=1)
    await bus.publish(B, b"stays")
    async with asyncio.timeout(60):
        while await bus.last_message(STATE, A) is not None:
            await asyncio.sleep(0.1)
    # The subject is as if it never existed: a new object of that name starts at sequence zero.
    await bus.publish(A, b"again", expected_last_subject_sequence=0)
    assert (await bus.stream_state(STATE)).messages == 2


async def test_a_full_work_queue_rejects_messages(bus: Bus) -> None:
    small = StreamSpec(
        name=COMMANDS.name,
        subjects=COMMANDS.subjects,
        description="small",
        retention=COMMANDS.retention,
        discard=Discard.NEW,
        max_messages=2,
    )
    await bus.declare(small)
    await bus.publish("dynamo.cmd.v1.c.ns.s.a", b"")
    await bus.publish("dynamo.cmd.v1.c.ns.s.b", b"")
    with pytest.raises(StreamFullError):
        await bus.publish("dynamo.cmd.v1.c.ns.s.c", b"")


async def test_reading_and_removing_by_sequence(bus: Bus) -> None:
    await bus.declare(EVENTS)
    ack = await bus.publish("dynamo.evt.v1.c.ns.kind.name.ready", b"x")
    message = await bus.read(EVENTS, ack.sequence)
    assert message is not None
    assert message.payload == b"x"
    await bus.remove(EVENTS, ack.sequence)
    await bus.remove(EVENTS, ack.sequence)
    assert await bus.read(EVENTS, ack.sequence) is None


async def test_health_follows_the_server(rig: Any) -> None:
    observed: list[BusHealth] = []
    rig.bus.on_health(observed.append)
    assert rig.bus.health is BusHealth.CONNECTED
    assert rig.bus.trouble == ""
    await rig.stop()
    await rig.until_degraded()
    assert rig.bus.trouble
    with pytest.raises(BusUnavailableError):
        await rig.bus.publish(A, b"")
    await rig.start()
    assert rig.bus.health is BusHealth.CONNECTED
    assert observed == [BusHealth.DEGRADED, BusHealth.CONNECTED]


async def test_data_survives_a_restart(rig: Any) -> None:
    await rig.bus.declare(STATE)
    await rig.bus.publish(A, b"1")
    before = await rig.bus.stream_state(STATE)
    await rig.stop()
    await rig.start()
    assert await rig.bus.stream_state(STATE) == before


async def test_data_loss_changes_the_incarnation(rig: Any) -> None:
    await rig.bus.declare(STATE)
    before = await rig.bus.stream_state(STATE)
    await rig.stop()
    await rig.lose_data()
    await rig.start()
    with pytest.raises(StreamNotFoundError):
        await rig.bus.publish(A, b"1")
    await rig.bus.declare(STATE)
    assert (await rig.bus.stream_state(STATE)).incarnation != before.incarnation


async def test_a_closed_bus_raises(rig: Any) -> None:
    bus = await rig.another()
    await bus.close()
    with pytest.raises(BusClosedError):
        await bus.publish(A, b"")
    with pytest.raises(BusClosedError):
        await bus.wait_connected()


async def test_an_invalid_message_is_rejected_before_it_costs_the_connection(bus: Bus) -> None:
    await bus.declare(STATE)
    with pytest.raises(MessageTooLargeError):
        await bus.publish(A, b"x" * (1 << 20), headers={"more": "x"})
    with pytest.raises(MessageTooLargeError):
        await bus.publish(f"dynamo.state.v1.c.pods.ns.{'n' * 4096}", b"")
    assert bus.health is BusHealth.CONNECTED
    await bus.publish(A, b"1")


class SmallAccount(NatsServer):
    """A server with several accounts, as many companies run it: the platform's may store 64 KiB."""

    def _configuration(self) -> dict[str, Any]:
        account = {"jetstream": {"max_file": 64 << 10}, "users": [{"user": "dynamo", "password": "hush"}]}
        return {**super()._configuration(), "accounts": {"PLATFORM": account}}


async def test_a_full_account_accepts_messages_again_once_there_is_room(tmp_path: Path) -> None:
    """Messages are retried: after a permanent refusal, state would miss a change and events would be lost."""
    async with SmallAccount(await Programs().obtain("nats-server"), tmp_path / "nats") as server:
        bus = await NatsBus.connect(servers=(server.url,), user="dynamo", password="hush")
        await bus.declare(STATE)

        async def fill() -> None:
            for number in range(100):
                await bus.publish(f"{A}{number}", b"x" * 4096)

        with pytest.raises(StreamFullError):
            await fill()
        await bus.remove(STATE, 1)
        await bus.publish(A, b"x")
        await bus.close()
