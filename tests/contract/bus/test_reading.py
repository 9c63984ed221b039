"""What every bus guarantees to a reader that reads a stream in order."""

import asyncio
from typing import Any

import pytest
from dynamo_shared.bus import Bus
from dynamo_shared.bus.protocol import (
    CaughtUp,
    Item,
    Message,
    OutgoingMessage,
    Start,
    Subscription,
    SubscriptionRestarted,
)
from dynamo_shared.bus.streams import EVENTS, STATE

PODS = "dynamo.state.v1.c.pods.>"


def pod(name: str) -> str:
    return f"dynamo.state.v1.c.pods.ns.{name}"


def event(name: str) -> str:
    return f"dynamo.evt.v1.c.ns.kind.{name}.ready"


async def take(subscription: Subscription, count: int) -> list[str]:
    """The next items; messages are shown as their payloads."""
    return [show(await one(subscription)) for _ in range(count)]


async def one(subscription: Subscription) -> Item:
    async with asyncio.timeout(60):
        return await subscription.__anext__()


def show(item: Item) -> str:
    if isinstance(item, Message):
        return item.payload.decode()
    if isinstance(item, SubscriptionRestarted):
        return "restarted" if item.complete else "restarted from the beginning"
    return "caught up"


async def test_last_values_come_first_and_new_ones_follow(bus: Bus) -> None:
    await bus.declare(STATE)
    for name, payload in [("a", b"a1"), ("b", b"b1"), ("a", b"a2")]:
        await bus.publish(pod(name), payload)
    await bus.publish("dynamo.state.v1.c.nodes._.n", b"node")
    subscription = await bus.subscribe(STATE, [PODS], start=Start.LAST_PER_SUBJECT)
    assert await take(subscription, 3) == ["b1", "a2", "caught up"]
    await bus.publish(pod("b"), b"b2")
    assert await take(subscription, 1) == ["b2"]
    await subscription.close()


async def test_values_that_are_replaced_before_they_are_read_come_before_the_end_of_the_old_ones(bus: Bus) -> None:
    """Otherwise their objects are missing when a reader has caught up, and count as deleted for a moment."""
    await bus.declare(STATE)
    for _ in range(5):
        for name in ("a", "b"):
            await bus.publish(pod(name), name.encode())
        subscription = await bus.subscribe(STATE, [PODS], start=Start.LAST_PER_SUBJECT)
        await bus.publish(pod("new"), b"new")
        await bus.publish(pod("a"), b"a")
        items: list[str] = []
        while "caught up" not in items:
            items += await take(subscription, 1)
        assert {"a", "b"} < set(items)
        await subscription.close()


async def test_an_empty_stream_is_caught_up_at_once(bus: Bus) -> None:
    subscription = await bus.subscribe(STATE, [PODS], start=Start.LAST_PER_SUBJECT)
    assert await take(subscription, 1) == ["caught up"]
    await bus.publish(pod("a"), b"a1")
    assert await take(subscription, 1) == ["a1"]
    await subscription.close()


async def test_several_filters(bus: Bus) -> None:
    await bus.declare(STATE)
    await bus.publish(pod("a"), b"pod")
    await bus.publish("dynamo.state.v1.c.nodes._.n", b"node")
    await bus.publish("dynamo.state.v1.c.roles.ns.r", b"role")
    subscription = await bus.subscribe(STATE, [PODS, "dynamo.state.v1.c.nodes.>"], start=Start.LAST_PER_SUBJECT)
    assert await take(subscription, 3) == ["pod", "node", "caught up"]
    await subscription.close()


async def test_only_new_messages(bus: Bus) -> None:
    await bus.declare(EVENTS)
    await bus.publish(event("a"), b"old")
    subscription = await bus.subscribe(EVENTS, ["dynamo.evt.v1.>"], start=Start.NEW)
    await bus.publish(event("a"), b"new")
    assert await take(subscription, 2) == ["caught up", "new"]
    await subscription.close()


async def test_all_messages_in_order(bus: Bus) -> None:
    await bus.declare(EVENTS)
    for number in range(5):
        await bus.publish(event("a"), str(number).encode())
    subscription = await bus.subscribe(EVENTS, ["dynamo.evt.v1.*.*.*.*.ready"], start=Start.ALL)
    assert await take(subscription, 6) == ["0", "1", "2", "3", "4", "caught up"]
    await subscription.close()


async def test_headers_only(bus: Bus) -> None:
    await bus.declare(STATE)
    await bus.publish(pod("a"), b"payload", headers={"uid": "u"})
    subscription = await bus.subscribe(STATE, [PODS], start=Start.LAST_PER_SUBJECT, headers_only=True)
    item = await one(subscription)
    assert isinstance(item, Message)
    assert (item.payload, item.headers["uid"], item.sequence) == (b"", "u", 1)
    await subscription.close()


async def test_more_messages_than_a_reader_buffers(bus: Bus) -> None:
    """The reader requests a few hundred at a time; nothing is lost or duplicated between the requests."""
    await bus.declare(EVENTS)
    futures = [await bus.send(OutgoingMessage(event("a"), str(number).encode())) for number in range(3000)]
    await asyncio.gather(*futures)
    subscription = await bus.subscribe(EVENTS, ["dynamo.evt.v1.>"], start=Start.ALL)
    assert await take(subscription, 3000) == [str(number) for number in range(3000)]
    assert await take(subscription, 1) == ["caught up"]
    await subscription.close()


async def test_a_closed_subscription_ends(bus: Bus) -> None:
    subscription = await bus.subscribe(EVENTS, ["dynamo.evt.v1.>"], start=Start.NEW)
    await take(subscription, 1)
    waiting = asyncio.create_task(one(subscription))
    await asyncio.sleep(0.05)
    await subscription.close()
    with pytest.raises(StopAsyncIteration):
        await asyncio.wait_for(waiting, 60)


async def test_last_values_are_read_again_after_a_restart(rig: Any) -> None:
    await rig.bus.declare(STATE)
    await rig.bus.publish(pod("a"), b"a1")
    subscription = await rig.bus.subscribe(STATE, [PODS], start=Start.LAST_PER_SUBJECT)
    assert await take(subscription, 2) == ["a1", "caught up"]
    waiting = asyncio.create_task(take(subscription, 4))
    await rig.stop()
    await rig.start()
    other = await rig.another()
    await other.publish(pod("b"), b"b1")
    items = await asyncio.wait_for(waiting, 60)
    assert items[:2] == ["restarted from the beginning", "a1"]
    assert sorted(items[2:]) == ["b1", "caught up"]
    await subscription.close()


async def test_events_continue_after_a_restart_without_gap_or_duplicate(rig: Any) -> None:
    await rig.bus.declare(EVENTS)
    subscription = await rig.bus.subscribe(EVENTS, ["dynamo.evt.v1.>"], start=Start.NEW)
    await rig.bus.publish(event("a"), b"1")
    assert await take(subscription, 2) == ["caught up", "1"]
    await rig.stop()
    await rig.start()
    await rig.bus.publish(event("a"), b"2")
    items = await take(subscription, 3)
    assert items[0] == "restarted"
    assert sorted(items[1:]) == ["2", "caught up"]
    await subscription.close()


async def test_a_lost_stream_is_recreated_and_read_from_its_beginning(rig: Any) -> None:
    await rig.bus.declare(EVENTS)
    subscription = await rig.bus.subscribe(EVENTS, ["dynamo.evt.v1.>"], start=Start.NEW)
    await rig.bus.publish(event("a"), b"1")
    assert await take(subscription, 2) == ["caught up", "1"]
    await rig.stop()
    await rig.lose_data()
    await rig.start()
    assert await take(subscription, 2) == ["restarted from the beginning", "caught up"]
    await rig.bus.publish(event("a"), b"2")
    assert await take(subscription, 1) == ["2"]
    await subscription.close()


async def test_reported_positions_name_the_stream(rig: Any) -> None:
    await rig.bus.declare(STATE)
    subscription = await rig.bus.subscribe(STATE, [PODS], start=Start.LAST_PER_SUBJECT)
    before = (await rig.bus.stream_state(STATE)).incarnation
    assert await one(subscription) == CaughtUp(before)
    await rig.stop()
    await rig.lose_data()
    await rig.start()
    restarted, caught_up = await one(subscription), await one(subscription)
    now = (await rig.bus.stream_state(STATE)).incarnation
    assert now != before
    assert (restarted, caught_up) == (SubscriptionRestarted(complete=False, incarnation=now), CaughtUp(now))
    await subscription.close()


async def test_a_reader_can_start_before_the_server(rig: Any) -> None:
    await rig.stop()
    await rig.until_degraded()
    subscription = await rig.bus.subscribe(STATE, [PODS], start=Start.LAST_PER_SUBJECT)
    waiting = asyncio.create_task(take(subscription, 1))
    await rig.start()
    assert await asyncio.wait_for(waiting, 60) == ["caught up"]
    await subscription.close()
