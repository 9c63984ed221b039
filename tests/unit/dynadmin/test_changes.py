"""Changes of a stream, and its silence."""

from __future__ import annotations

import asyncio
from collections import deque

import pytest
from dynamo_dynadmin.state.entries import StoredObject
from dynamo_dynadmin.state.hub import Reader, Resync, changes
from dynamo_shared.api.resources import DYNAMO_MODELS, ObjectKey
from dynamo_shared.state.versions import Version

WITHIN = 5.0
LONG = 3600.0


def reader() -> Reader:
    return Reader(DYNAMO_MODELS, "n", deque(), asyncio.Event())


def entry(number: int) -> StoredObject:
    return StoredObject(ObjectKey("n", "m"), number, Version("u", number, ""), b"{}")


async def test_changes_of_one_moment_come_together_and_silence_is_an_empty_list() -> None:
    place, waits = reader(), iter([LONG, LONG, 0.01, 0.01, LONG])
    async with asyncio.timeout(WITHIN):
        stream = changes(place, lambda: next(waits))
        place.offer(entry(1))
        place.offer(entry(2))
        assert [each.sequence for each in await anext(stream)] == [1, 2]
        place.offer(entry(3))
        assert [each.sequence for each in await anext(stream)] == [3]
        # A shorter wait than the one before, as when a token ends.
        assert await anext(stream) == []
        assert await anext(stream) == []
        place.offer(entry(4))
        assert [each.sequence for each in await anext(stream)] == [4]


async def test_silence_is_counted_from_the_last_change() -> None:
    place, loop = reader(), asyncio.get_running_loop()
    async with asyncio.timeout(WITHIN):
        stream = changes(place, lambda: 0.2)
        loop.call_later(0.1, place.offer, entry(1))
        assert await anext(stream)
        last = loop.time()
        assert await anext(stream) == []
        assert loop.time() - last >= 0.2


async def test_a_reader_that_lost_its_place_begins_again() -> None:
    place = reader()
    place.lose()
    with pytest.raises(Resync):
        async with asyncio.timeout(WITHIN):
            await anext(changes(place, lambda: LONG))
