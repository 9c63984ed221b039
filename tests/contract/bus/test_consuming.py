"""What every bus does with work that must be acknowledged."""

import asyncio
import contextlib
import dataclasses
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from dynamo_shared.bus import Bus
from dynamo_shared.bus.errors import BusUnavailableError
from dynamo_shared.bus.protocol import Consumer, ConsumerSpec, Delivery
from dynamo_shared.bus.streams import ADVISORY_PREFIX, COMMANDS, DEAD_LETTERS

from tests.building.tasks import in_background

SUBJECT = "dynamo.cmd.v1.c.ns.scaler.scale"
SPEC = ConsumerSpec(
    stream=COMMANDS, name="c-scaler", subjects=("dynamo.cmd.v1.c.*.scaler.*",), ack_wait=0.5, max_deliver=3
)


@pytest.fixture
async def consumer(bus: Bus) -> AsyncIterator[Consumer]:
    """A consumer of commands; their stream is declared."""
    await bus.declare(COMMANDS)
    consumer = await bus.consume(SPEC)
    yield consumer
    await consumer.close()


async def one(consumer: Consumer) -> Delivery:
    async with asyncio.timeout(60):
        return await consumer.__anext__()


async def nothing(consumer: Consumer, seconds: float) -> bool:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(seconds):
            await consumer.__anext__()
    return True


async def test_acknowledged_work_is_removed(bus: Bus, consumer: Consumer) -> None:
    await bus.publish(SUBJECT, b"1", headers={"ce-id": "x"})
    delivery = await one(consumer)
    assert (delivery.message.payload, delivery.message.subject, delivery.deliveries) == (b"1", SUBJECT, 1)
    assert delivery.message.headers["ce-id"] == "x"
    await delivery.ack()
    assert (await bus.stream_state(COMMANDS)).messages == 0


async def test_unacknowledged_work_is_redelivered(bus: Bus, consumer: Consumer) -> None:
    await bus.publish(SUBJECT, b"1")
    assert (await one(consumer)).deliveries == 1
    again = await one(consumer)
    assert again.deliveries == 2
    await again.ack()


async def test_work_with_a_nak_is_redelivered_after_the_delay(bus: Bus, consumer: Consumer) -> None:
    await bus.publish(SUBJECT, b"1")
    loop = asyncio.get_running_loop()
    await (await one(consumer)).nak(0.3)
    began = loop.time()
    again = await one(consumer)
    assert again.deliveries == 2
    assert loop.time() - began > 0.2
    await again.ack()


async def test_in_progress_extends_the_ack_wait(bus: Bus) -> None:
    await bus.declare(COMMANDS)
    # A busy machine may report progress seconds late.
    consumer = await bus.consume(dataclasses.replace(SPEC, ack_wait=3.0))
    await bus.publish(SUBJECT, b"1")
    delivery = await one(consumer)

    async def work() -> None:
        while True:
            await asyncio.sleep(0.25)
            await delivery.in_progress()

    async with in_background(work()):
        assert await nothing(consumer, 4.0)
    await delivery.ack()
    await consumer.close()


async def test_rejected_work_is_removed(bus: Bus, consumer: Consumer) -> None:
    await bus.publish(SUBJECT, b"1")
    await (await one(consumer)).reject()
    assert await nothing(consumer, 0.8)
    assert (await bus.stream_state(COMMANDS)).messages == 0


async def test_after_the_last_delivery_there_is_an_advisory(bus: Bus) -> None:
    await bus.declare(COMMANDS, DEAD_LETTERS)
    consumer = await bus.consume(SPEC)
    ack = await bus.publish(SUBJECT, b"poison")
    for expected in (1, 2, 3):
        assert (await one(consumer)).deliveries == expected
    advisories = await bus.consume(
        ConsumerSpec(stream=DEAD_LETTERS, name="c-scaler-lost", subjects=(f"{ADVISORY_PREFIX}.c-scaler",))
    )
    waiting = asyncio.create_task(nothing(consumer, 2.0))
    advisory = await one(advisories)
    await waiting
    reported = json.loads(advisory.message.payload)
    assert (reported["consumer"], reported["stream_seq"], reported["deliveries"]) == ("c-scaler", ack.sequence, 3)
    await advisory.ack()
    # The work itself stays in the stream, so that an operator can repair it.
    assert await bus.read(COMMANDS, ack.sequence) is not None
    await consumer.close()
    await advisories.close()


async def test_two_consumers_share_the_work(rig: Any) -> None:
    await rig.bus.declare(COMMANDS)
    other = await rig.another()
    first, second = await rig.bus.consume(SPEC, prefetch=1), await other.consume(SPEC, prefetch=1)
    await rig.bus.publish(SUBJECT, b"1")
    await rig.bus.publish(SUBJECT, b"2")
    one_of, other_of = await one(first), await one(second)
    assert {one_of.message.payload, other_of.message.payload} == {b"1", b"2"}
    await one_of.ack()
    await other_of.ack()
    await first.close()
    await second.close()


async def test_work_survives_a_restart_of_the_server(rig: Any) -> None:
    await rig.bus.declare(COMMANDS)
    consumer = await rig.bus.consume(SPEC)
    await rig.bus.publish(SUBJECT, b"1")
    await rig.stop()
    await rig.start()
    acknowledged = False
    while not acknowledged:
        # Work in progress when the server stopped may be a delivery that the restarted server does not know: its
        # acknowledgement fails, and it is redelivered.
        delivery = await one(consumer)
        assert delivery.message.payload == b"1"
        with contextlib.suppress(BusUnavailableError):
            await delivery.ack()
            acknowledged = True
    await consumer.close()


async def test_a_lost_stream_and_its_consumer_are_recreated(rig: Any) -> None:
    await rig.bus.declare(COMMANDS)
    consumer = await rig.bus.consume(SPEC)
    waiting = asyncio.create_task(one(consumer))
    await rig.stop()
    await rig.lose_data()
    await rig.start()
    async with asyncio.timeout(60):
        while True:
            try:
                await rig.bus.publish(SUBJECT, b"2")
                break
            except Exception:
                await asyncio.sleep(0.05)
    delivery = await asyncio.wait_for(waiting, 60)
    assert delivery.message.payload == b"2"
    await delivery.ack()
    await consumer.close()
