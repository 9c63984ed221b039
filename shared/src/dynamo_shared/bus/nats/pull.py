"""Receiving from a JetStream consumer: pull requests, heartbeats and what to do when either stays away.

One pull request after the other is kept open on the server, so a new message arrives without a question being asked for
it. The messages that are asked for never exceed what this process is ready to hold: a slow reader slows the server down
and loses nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import NamedTuple

import msgspec
import nats.errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription

from dynamo_shared.bus.nats.session import TRANSLATED, NatsSession, translate

EXPIRES = 30.0
"""Seconds that a pull request stays open on the server."""

HEARTBEAT = 5.0
"""Seconds between the server's signs of life while there is nothing to deliver."""

MISSED_HEARTBEATS = 2.5
"""Heartbeats that may stay away before the consumer counts as lost."""

NANOSECONDS = 1_000_000_000

HEARTBEAT_STATUS = "100"

ENDED = frozenset({"404", "408"})
"""States of a pull request that is over in a regular way: nothing there, or expired."""


class PullEndedError(Exception):
    """The consumer or the connection is gone: recreate it."""


class DeliveryMetadata(NamedTuple):
    """What the reply subject of a delivery says."""

    deliveries: int
    stream_sequence: int
    consumer_sequence: int
    pending: int


def metadata_of(reply: str) -> DeliveryMetadata:
    """Reads `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<time>.<pending>`.

    Servers with a domain put two tokens in after `$JS.ACK`, and may put one at the end.
    """
    tokens = reply.split(".")
    first = 4 if len(tokens) == 9 else 6
    return DeliveryMetadata(int(tokens[first]), int(tokens[first + 1]), int(tokens[first + 2]), int(tokens[first + 4]))


class Puller:
    """Messages of one consumer on one session, until either ends."""

    def __init__(self, session: NatsSession, stream: str, consumer: str, capacity: int) -> None:
        self._session = session
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._capacity = capacity
        self._ready: deque[Msg] = deque()
        self._asked = 0
        self._wake = asyncio.Event()
        self._trouble = ""
        self._inbox = session.client.new_inbox()
        self._subscription: NatsSubscription | None = None

    async def start(self) -> None:
        """Begins to receive."""
        self._session.on_end(self.interrupt)
        try:
            self._subscription = await self._session.client.subscribe(
                self._inbox, cb=self._on_message, pending_msgs_limit=self._capacity * 4, pending_bytes_limit=0
            )
            await self._ask()
        except TRANSLATED as error:
            raise translate(error) from error

    async def stop(self) -> None:
        """Stops receiving; what was received can still be taken with `take_ready`."""
        self._session.forget(self.interrupt)
        self._trouble = self._trouble or "stopped"
        self._wake.set()
        if self._subscription is not None and not self._session.ended.is_set():
            # Refused only by a connection that is gone, and its subscriptions with it.
            with suppress(nats.errors.Error):
                await self._subscription.unsubscribe()
        self._subscription = None

    def interrupt(self) -> None:
        """Makes `take` check its state now."""
        self._wake.set()

    def take_ready(self) -> Msg | None:
        """A message that is here already, or None."""
        return self._ready.popleft() if self._ready else None

    async def take(self) -> Msg:
        """The next message; PullEndedError when there will be none."""
        while not self._ready:
            if self._trouble or self._session.ended.is_set():
                raise PullEndedError(self._trouble or "the connection was lost")
            await self.refill()
            self._wake.clear()
            try:
                async with asyncio.timeout(HEARTBEAT * MISSED_HEARTBEATS):
                    await self._wake.wait()
            except TimeoutError:
                raise PullEndedError("no sign of life from the consumer") from None
        return self._ready.popleft()

    async def refill(self) -> None:
        """Asks for more when at most half of the capacity is on its way or here."""
        if self._asked + len(self._ready) > self._capacity // 2:
            return
        try:
            await self._ask()
        except TRANSLATED as error:
            raise PullEndedError(str(error)) from error

    async def _ask(self) -> None:
        batch = self._capacity - self._asked - len(self._ready)
        self._asked += batch
        request = {
            "batch": batch,
            "expires": int(EXPIRES * NANOSECONDS),
            "idle_heartbeat": int(HEARTBEAT * NANOSECONDS),
        }
        await self._session.client.publish(self._next, msgspec.json.encode(request), reply=self._inbox)

    async def _on_message(self, message: Msg) -> None:
        status = message.headers.get("Status") if message.headers and not message.data else None
        if status is None:
            self._asked = max(0, self._asked - 1)
            self._ready.append(message)
        elif status in ENDED:
            left = (message.headers or {}).get("Nats-Pending-Messages")
            self._asked = max(0, self._asked - int(left)) if left is not None else 0
        elif status != HEARTBEAT_STATUS:
            self._trouble = (message.headers or {}).get("Description", f"status {status}")
        self._wake.set()
