"""Readers of STATE read the needed partitions, for a while the former ones, and give other tasks of their process a turn."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from dynamo_shared.api.resources import PODS
from dynamo_shared.bus.protocol import Message, Subscription
from dynamo_shared.state import ObjectCache, StateReader, messages
from dynamo_shared.state.reader import BYTES_AT_ONCE
from dynamo_shared.state.share import FORGET_AFTER, Share

from tests.building.clock import ManualClock
from tests.building.memory_bus import MemoryBus
from tests.building.waiting import counted_turns

COUNT = 40


def pod(number: int, size: int) -> dict[str, Any]:
    metadata = {"name": f"p{number}", "namespace": "ns", "uid": f"u{number}", "resourceVersion": str(number + 1)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"large": "x" * size}}


@pytest.mark.parametrize(("size", "most"), [(messages.COMPRESSED_ABOVE, 1), (100_000, 1 + BYTES_AT_ONCE // 100_000)])
async def test_other_tasks_run_while_large_objects_are_read(size: int, most: int) -> None:
    """Dozens of objects of a megabyte, each compressed to a few kilobytes, took seconds of the loop of every service."""
    cache, in_a_row = ObjectCache(), Counter[int]()
    reader = StateReader(MemoryBus(), "c", [PODS], cache)

    async def received() -> AsyncIterator[Message]:
        """Messages that have arrived already, which are read without a wait."""
        for number in range(COUNT):
            obj = pod(number, size)
            payload, encoding = messages.pack(messages.encode_object(obj))
            headers = messages.object_headers(obj, messages.ChangeType.ADDED) | encoding
            yield Message(f"dynamo.state.v1.c.pods.ns.p{number}", payload, headers, number + 1)

    async with counted_turns() as rounds:
        cache.on_change(lambda *_: in_a_row.update((rounds(),)))
        await reader._read(cast("Subscription", received()))
    assert cache.count(PODS) == COUNT
    assert max(in_a_row.values()) <= most


class Kept:
    """The partitions that a replica keeps; the test sets them."""

    def __init__(self) -> None:
        self.partitions: frozenset[int] = frozenset()
        self.clock = ManualClock()
        self.share = Share(lambda: self.partitions, self.clock)

    def keep(self, *partitions: int) -> None:
        self.partitions = frozenset(partitions)

    def read(self) -> None:
        self.share.begin()
        self.share.complete()


def test_a_needed_partition_is_covered_after_it_has_been_read() -> None:
    kept = Kept()
    kept.keep(1, 2)
    assert kept.share.lacks()
    kept.share.begin()
    assert not kept.share.lacks()
    assert not kept.share.is_covered()
    assert kept.share.adds()
    kept.share.complete()
    assert kept.share.is_covered()
    assert not kept.share.adds()


def test_a_lost_partition_is_read_for_a_while() -> None:
    """A lease that is lost for a moment costs no new read."""
    kept = Kept()
    kept.keep(1, 2)
    kept.read()
    kept.keep(1)
    assert kept.share.expire() == frozenset()
    kept.clock.now += FORGET_AFTER - 1
    assert kept.share.expire() == frozenset()
    kept.keep(1, 2)
    assert not kept.share.lacks()
    assert kept.share.is_covered()


def test_afterwards_a_lost_partition_is_forgotten_and_must_be_read_again() -> None:
    kept = Kept()
    kept.keep(1, 2)
    kept.read()
    kept.keep(1)
    kept.share.expire()
    kept.clock.now += FORGET_AFTER
    assert kept.share.expire() == frozenset({2})
    assert kept.share.reading == kept.share.covered == frozenset({1})
    kept.keep(1, 2)
    assert kept.share.lacks()


def test_the_time_of_a_returned_partition_starts_again() -> None:
    kept = Kept()
    kept.keep(1)
    kept.read()
    kept.keep()
    kept.share.expire()
    kept.clock.now += FORGET_AFTER - 1
    kept.keep(1)
    kept.share.expire()
    kept.keep()
    kept.clock.now += FORGET_AFTER - 1
    assert kept.share.expire() == frozenset()
