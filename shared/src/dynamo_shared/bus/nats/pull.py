"""Receives from a JetStream consumer: pull requests, heartbeats, and what happens when either is missing.

One pull request is always open on the server, so a new message arrives without a further request. The requested
messages never exceed, in number and in bytes, what this process can hold: a slow reader slows the server down and loses
nothing.
"""

from collections import deque
from contextlib import suppress
from typing import NamedTuple

import msgspec
import nats.errors
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as NatsSubscription

from dynamo_shared.aio import Signal
from dynamo_shared.bus.nats.session import TRANSLATED, NatsSession, translate

EXPIRES = 30.0
"""Seconds for which a pull request stays open on the server."""

HEARTBEAT = 5.0
"""Seconds between the server's heartbeats while there is nothing to deliver."""

MISSED_HEARTBEATS = 2.5
"""Heartbeats that may be missing before the consumer counts as lost."""

NANOSECONDS = 1_000_000_000

HEARTBEAT_STATUS = "100"

WINDOW = 8 << 20
"""Limit of requested bytes of messages; at least two messages of the largest size that the server accepts."""

_AROUND = 64 << 10
"""Bytes of a message in addition to its payload and headers, as the server counts them; a generous estimate."""

ENDED = frozenset({"404", "408"})
"""Statuses of a pull request that ended normally: no messages, or expired."""


USED_UP = frozenset({"Message Size Exceeds MaxBytes", "Batch Completed"})
"""How the server reports a request that ended at its limits; the status is that of an error."""


class PullEndedError(Exception):
    """The consumer or the connection is lost: recreate it."""


class DeliveryMetadata(NamedTuple):
    """Content of a delivery's reply subject."""

    deliveries: int
    stream_sequence: int
    consumer_sequence: int
    pending: int


def metadata_of(reply: str) -> DeliveryMetadata:
    """Parse `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream seq>.<consumer seq>.<time>.<pending>`.

    Servers with a domain insert two tokens after `$JS.ACK`, and may append one.
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
        self._window = max(WINDOW, 2 * (session.client.max_payload + _AROUND))
        self._ready: deque[Msg] = deque()
        self._ready_bytes = 0
        self._asked = 0
        """messages that the current request may still bring"""
        self._wake = Signal(HEARTBEAT * MISSED_HEARTBEATS)
        self._trouble = ""
        self._inbox = session.client.new_inbox()
        self._request = 0
        """number of the current request: statuses of an earlier one may come late"""
        self._subscription: NatsSubscription | None = None

    async def start(self) -> None:
        """Start to receive. If that fails or is cancelled, everything is undone."""
        self._session.on_end(self.interrupt)
        try:
            self._subscription = await self._session.client.listen(f"{self._inbox}.*", self._on_message)
            await self._ask()
        except BaseException as error:
            # Otherwise requested messages would wait here unread for as long as the connection lasts.
            await self.stop()
            if isinstance(error, TRANSLATED):
                raise translate(error) from error
            raise

    async def stop(self) -> None:
        """Stop receiving; received messages can still be taken with `take_ready`."""
        self._session.forget(self.interrupt)
        self._trouble = self._trouble or "stopped"
        self._wake.set()
        if self._subscription is not None and not self._session.ended.is_set():
            # Only a lost connection refuses this, and its subscriptions are lost with it.
            with suppress(nats.errors.Error):
                await self._subscription.unsubscribe()
        self._subscription = None

    def interrupt(self) -> None:
        """Make `take` check its state now."""
        self._wake.set()

    def take_ready(self) -> Msg | None:
        """A received message, or None."""
        if not self._ready:
            return None
        message = self._ready.popleft()
        self._ready_bytes -= len(message.data)
        return message

    async def take(self) -> Msg:
        """Wait for the next message; PullEndedError if there will be none."""
        while (ready := self.take_ready()) is None:
            if self._trouble or self._session.ended.is_set():
                raise PullEndedError(self._trouble or "the connection was lost")
            # Before the request: a message that arrives while it is sent must wake this task.
            self._wake.clear()
            await self.refill()
            try:
                await self._wake.wait()
            except TimeoutError:
                raise PullEndedError("no heartbeat from the consumer") from None
        return ready

    async def refill(self) -> None:
        """Request more messages if no request is open and at most half of the capacity is used."""
        if self._asked or len(self._ready) > self._capacity // 2 or self._ready_bytes > self._window // 2:
            return
        try:
            await self._ask()
        except TRANSLATED as error:
            raise PullEndedError(str(error)) from error

    async def _ask(self) -> None:
        # One request at a time: the server fills several in turn, and the remainder of each would be unknown.
        self._asked = self._capacity - len(self._ready)
        request = {
            "batch": self._asked,
            "max_bytes": self._window - self._ready_bytes,
            "expires": int(EXPIRES * NANOSECONDS),
            "idle_heartbeat": int(HEARTBEAT * NANOSECONDS),
        }
        self._request += 1
        await self._session.client.publish(self._next, msgspec.json.encode(request), reply=self._reply)

    @property
    def _reply(self) -> str:
        return f"{self._inbox}.{self._request}"

    def _on_message(self, message: Msg) -> None:
        status = message.headers.get("Status") if message.headers and not message.data else None
        if status is None:
            self._asked = max(0, self._asked - 1)
            self._ready.append(message)
            self._ready_bytes += len(message.data)
        else:
            self._on_status(status, message)
        self._wake.set()

    def _on_status(self, status: str, message: Msg) -> None:
        description = (message.headers or {}).get("Description", f"status {status}")
        if status in ENDED or description in USED_UP:
            if message.subject == self._reply:
                self._asked = 0
        elif status != HEARTBEAT_STATUS:
            self._trouble = description
