"""Listening to plain subjects of a NATS that is not the platform's: no streams, no acknowledgements, nothing published.

The Dynamo runtime tells what its engines do on such subjects. Whoever listens wants the newest word of each sender, so what
comes while the connection is away, or faster than it is read, is lost, and nobody minds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

import nats.errors
import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from dynamo_shared.aio import ended
from dynamo_shared.bus.errors import BusClosedError, BusUnavailableError
from dynamo_shared.bus.nats.keeper import Keeper
from dynamo_shared.bus.nats.options import NatsOptions
from dynamo_shared.bus.nats.session import Session
from dynamo_shared.bus.protocol import Health

PENDING_MESSAGES = 8192
PENDING_BYTES = 16 << 20
"""Of one subject, waiting in this process; beyond it the newest are dropped."""

Handler = Callable[[str, bytes], None]
"""Takes subject and payload, on the event loop; must be quick."""

log = structlog.get_logger("dynamo.bus.nats")


class Listening:
    """One subject that is listened to, over all connections, until it is closed."""

    def __init__(self, listener: NatsListener, subject: str, handler: Handler) -> None:
        self._listener = listener
        self._handler = handler
        self._subscription: Subscription | None = None
        self.subject = subject

    async def close(self) -> None:
        """Listens no more."""
        await self._listener._drop(self)

    async def _on(self, message: Msg) -> None:
        try:
            self._handler(message.subject, message.data)
        except Exception:
            # One bad message, or one bad handler, must not end what the others hear.
            log.exception("cannot take a message", subject=message.subject)


class NatsListener:
    """A connection that only listens. It comes back by itself, and its subjects with it."""

    def __init__(self, options: NatsOptions) -> None:
        self._keeper = Keeper(options, counted=False)
        self._listenings: dict[Listening, None] = {}
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begins to connect; does not wait for it."""
        self._keeper.start()
        self._task = asyncio.create_task(self._keep(), name="nats-listener")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the connection."""
        if self._task is not None:
            await ended(self._task)
        await self._keeper.close()

    @property
    def health(self) -> Health:
        """Whether the server can be reached now."""
        return self._keeper.health

    @property
    def trouble(self) -> str:
        """Why it cannot be reached, in words without secrets; empty while it can."""
        return self._keeper.trouble

    async def listen(self, subject: str, handler: Handler) -> Listening:
        """Calls the handler with each message on a subject, which may have wildcards, from now or the next connection on."""
        listening = Listening(self, subject, handler)
        async with self._lock:
            self._listenings[listening] = None
            try:
                await self._subscribe(self._keeper.session(), listening)
            except BusUnavailableError:
                log.debug("subscribing with the next connection", subject=subject)
        return listening

    async def _drop(self, listening: Listening) -> None:
        async with self._lock:
            self._listenings.pop(listening, None)
            subscription, listening._subscription = listening._subscription, None
            if subscription is not None:
                try:
                    await subscription.unsubscribe()
                except (nats.errors.Error, OSError) as error:
                    log.debug("unsubscribing", subject=listening.subject, error=str(error))

    async def _keep(self) -> None:
        while True:
            try:
                session = await self._keeper.wait_session()
            except BusClosedError:
                return
            async with self._lock:
                for listening in self._listenings:
                    await self._subscribe(session, listening)
            await session.ended.wait()

    async def _subscribe(self, session: Session, listening: Listening) -> None:
        if listening._subscription is not None and listening._subscription._conn is session.client:
            return
        try:
            listening._subscription = await session.client.subscribe(
                listening.subject,
                cb=listening._on,
                pending_msgs_limit=PENDING_MESSAGES,
                pending_bytes_limit=PENDING_BYTES,
            )
        except (nats.errors.Error, OSError) as error:
            # The session is over, and the next one subscribes again.
            log.debug("subscribing", subject=listening.subject, error=str(error))
            listening._subscription = None
