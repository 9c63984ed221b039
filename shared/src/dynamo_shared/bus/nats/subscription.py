"""Reads a stream in order, and resumes after any interruption."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from nats.aio.msg import Msg

from dynamo_shared.bus import metrics
from dynamo_shared.bus.errors import BusError
from dynamo_shared.bus.nats import management
from dynamo_shared.bus.nats.keeper import Keeper
from dynamo_shared.bus.nats.pull import DeliveryMetadata, PullEndedError, Puller, metadata_of
from dynamo_shared.bus.nats.resuming import Declare, Resuming
from dynamo_shared.bus.protocol import CaughtUp, Item, Message, Start, SubscriptionRestarted
from dynamo_shared.bus.streams import StreamSpec

CAPACITY = 512
"""Limit of messages that a reader holds before it handles them."""

YIELD_EVERY = 64
"""Messages after which a busy reader lets other tasks run, so that they wait at most a few milliseconds."""


class NatsSubscription(Resuming[Item]):
    """An ordered reader; see `Subscription` in `protocol`."""

    def __init__(
        self,
        keeper: Keeper,
        declare: Declare,
        stream: StreamSpec,
        filters: Sequence[str],
        *,
        start: Start,
        headers_only: bool,
    ) -> None:
        super().__init__(keeper, declare, stream, f"subscription to {stream.name}")
        self._filters = list(filters)
        self._start = start
        self._headers_only = headers_only
        self._signs: deque[CaughtUp | SubscriptionRestarted] = deque()
        self._incarnation = ""
        self._position = 0
        self._consumer_sequence = 0
        self._to_catch_up = 0
        self._stored_until = 0
        self._is_in_doubt = False
        """whether the last of the old messages may have been read: they are counted again before the next wait"""
        self._caught_up = False
        self._breath = YIELD_EVERY

    async def establish(self) -> None:
        """Start or resume the reading on the current session."""
        session = self._keeper.session()
        state = await management.state(session, self._stream)
        again = bool(self._incarnation)
        same = state.incarnation == self._incarnation and state.last_sequence >= self._position
        start, complete = self._start, False
        if self._start is Start.NEW and not again:
            self._position = state.last_sequence
        elif self._start is not Start.LAST_PER_SUBJECT and again and same:
            start, complete = Start.NEW, self._position + 1 >= state.first_sequence
        elif again:
            start = Start.ALL if self._start is Start.NEW else self._start
            self._position = 0
        name, pending = await management.make_reader(
            session, self._stream, self._filters, start, after=self._position, headers_only=self._headers_only
        )
        puller = Puller(session, self._stream.name, name, CAPACITY)
        await puller.start()
        self._puller, self._incarnation = puller, state.incarnation
        self._consumer_sequence, self._to_catch_up, self._stored_until = 0, pending, state.last_sequence
        self._caught_up = self._is_in_doubt = False
        self._signs.clear()
        if again:
            metrics.RESTARTED.labels(self._stream.name).inc()
            self._signs.append(SubscriptionRestarted(complete, self._incarnation))
        if not pending:
            self._catch_up()

    def _sign(self) -> Item | None:
        return self._signs.popleft() if self._signs else None

    def _catch_up(self) -> None:
        self._caught_up, self._is_in_doubt = True, False
        self._signs.append(CaughtUp(self._incarnation))

    async def _count(self) -> None:
        """Count the messages that are still to come: of last messages, the server miscounts those that are replaced."""
        try:
            session = self._keeper.session()
            self._stored_until = (await management.state(session, self._stream)).last_sequence
            _, left = await management.make_reader(
                session, self._stream, self._filters, Start.NEW, after=self._position, headers_only=True
            )
        except BusError as error:
            raise PullEndedError(str(error)) from error
        self._to_catch_up, self._is_in_doubt = self._consumer_sequence + left, False
        if not left:
            self._catch_up()

    async def _next(self, puller: Puller) -> Item:
        raw = puller.take_ready()
        if raw is None:
            if self._is_in_doubt:
                await self._count()
                if (sign := self._sign()) is not None:
                    return sign
            raw = await puller.take()
            self._breath = YIELD_EVERY
        else:
            await puller.refill()
            self._breath -= 1
            if not self._breath:
                self._breath = YIELD_EVERY
                await asyncio.sleep(0)
        return self._accept(raw, metadata_of(raw.reply))

    def _accept(self, raw: Msg, metadata: DeliveryMetadata) -> Message:
        if metadata.consumer_sequence != self._consumer_sequence + 1:
            raise PullEndedError("a message is missing")
        self._consumer_sequence = metadata.consumer_sequence
        self._position = metadata.stream_sequence
        if not self._caught_up and (self._consumer_sequence >= self._to_catch_up or not metadata.pending):
            # Replaced or expired messages never arrive. A replacement comes after all messages stored at the start.
            complete = self._consumer_sequence >= self._to_catch_up and self._position <= self._stored_until
            if complete or self._start is not Start.LAST_PER_SUBJECT:
                self._catch_up()
            else:
                self._is_in_doubt = True
        return Message(raw.subject, raw.data, raw.headers or {}, metadata.stream_sequence)
