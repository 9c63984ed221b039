"""Readers of STATE give other tasks of their process a turn, however large the objects are."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from dynamo_shared.api.resources import PODS
from dynamo_shared.bus.protocol import Message, Subscription
from dynamo_shared.state import ObjectCache, StateReader, messages
from dynamo_shared.state.reader import BYTES_AT_ONCE

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
