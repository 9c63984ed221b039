"""Waits for the next item of a source and keeps its stream alive meanwhile: heartbeats, and checks of rights and
expiry.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from math import inf
from typing import Generic, Self, TypeVar

from dynamo_dynadmin.http.streaming import Stream

Item = TypeVar("Item")


class Pulse(Generic[Item]):
    """Yields items of a source as they come, and None after each silence of a heartbeat, or of `longest` seconds. The
    source is closed at the end of the block.

    A silence never cancels a step of the source, so no item is lost.
    """

    def __init__(self, source: AsyncGenerator[Item, None], stream: Stream) -> None:
        self._source = source
        self._stream = stream
        self.longest = inf
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
            done, _ = await asyncio.wait({self._step}, timeout=min(self._stream.timeout(), self.longest))
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
