"""Waits for the next of something while a stream is kept alive: heartbeats, rights and expiry come in between."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Generic, Self, TypeVar

from dynamo_dynadmin.http.streaming import Stream

Item = TypeVar("Item")


class Pulse(Generic[Item]):
    """Items of a source as they come, None after each silence. The source is closed at the end of the block.

    `heartbeat` says how many seconds that is.

    A step of the source is never cut short by a silence, so that nothing is lost between two of them.
    """

    def __init__(self, source: AsyncGenerator[Item, None], stream: Stream, heartbeat: Callable[[], float]) -> None:
        self._source = source
        self._stream = stream
        self._heartbeat = heartbeat
        self._step: asyncio.Task[Item] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._step is not None:
            self._step.cancel()
            await asyncio.wait({self._step})
        await self._source.aclose()

    async def __aiter__(self) -> AsyncIterator[Item | None]:
        while True:
            if self._step is None:
                self._step = asyncio.ensure_future(anext(self._source))
            done, _ = await asyncio.wait({self._step}, timeout=self._stream.timeout(self._heartbeat()))
            await self._stream.keep()
            if not done:
                yield None
                continue
            step, self._step = self._step, None
            try:
                item = step.result()
            except StopAsyncIteration:
                return
            yield item
