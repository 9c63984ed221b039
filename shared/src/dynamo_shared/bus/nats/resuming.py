"""Receives from a stream, and resumes after any interruption: the common part of subscriptions and consumers."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Generic, Self, TypeVar

import structlog

from dynamo_shared.aio import Backoff
from dynamo_shared.bus.errors import BusClosedError, BusError, BusUnavailableError, StreamNotFoundError
from dynamo_shared.bus.nats.keeper import Keeper
from dynamo_shared.bus.nats.pull import PullEndedError, Puller
from dynamo_shared.bus.streams import StreamSpec

FIRST_PAUSE = 0.05
LAST_PAUSE = 2.0

log = structlog.get_logger("dynamo.bus.nats")

Declare = Callable[[StreamSpec], Awaitable[None]]

T = TypeVar("T")


class Resuming(ABC, Generic[T]):
    """Pulls on the current session, and continues on the next one. `reader` names it in log lines."""

    def __init__(self, keeper: Keeper, declare: Declare, stream: StreamSpec, reader: str) -> None:
        self._keeper = keeper
        self._declare = declare
        self._stream = stream
        self._reader = reader
        self._puller: Puller | None = None
        self._closed = False
        self._backoff = Backoff(FIRST_PAUSE, LAST_PAUSE)
        """only a message resets it: if a server ends each pull at once, the next pull waits"""

    @abstractmethod
    async def establish(self) -> None:
        """Set the puller, on the current session."""

    def _sign(self) -> T | None:
        """An item to return before the next message, or None."""
        return None

    @abstractmethod
    async def _next(self, puller: Puller) -> T:
        """The next item; PullEndedError if the puller has ended."""

    async def _give_back(self, puller: Puller) -> None:
        """Handle the messages that an ended puller still has."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        is_missing = False
        while not self._closed:
            if (sign := self._sign()) is not None:
                return sign
            try:
                if self._puller is not None:
                    item = await self._next(self._puller)
                    self._backoff.reset()
                    return item
                await self._keeper.wait_session()
                if is_missing:
                    await self._declare(self._stream)
                    is_missing = False
                await self.establish()
            except PullEndedError as error:
                log.debug("reading interrupted", reader=self._reader, cause=str(error))
                await self._drop()
                await asyncio.sleep(self._backoff.next())
            except StreamNotFoundError:
                is_missing = True
                await asyncio.sleep(self._backoff.next())
            except BusClosedError:
                break
            except BusError as error:
                if not isinstance(error, BusUnavailableError):
                    log.warning("cannot read", reader=self._reader, error=str(error))
                await asyncio.sleep(self._backoff.next())
        raise StopAsyncIteration

    async def close(self) -> None:
        """Stop receiving, and give back messages that were received and not taken."""
        self._closed = True
        await self._drop()

    async def _drop(self) -> None:
        puller, self._puller = self._puller, None
        if puller is not None:
            await puller.stop()
            await self._give_back(puller)
