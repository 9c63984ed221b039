"""Lasting subscriptions to plain subjects of a NATS other than the platform's: no streams, no acknowledgements, no
publishing.

On such subjects the Dynamo runtime reports what its engines do. Only the newest message of each sender counts, so
messages are dropped while the connection is lost, or if they arrive faster than they are read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self

import nats.errors
import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from dynamo_shared.aio import ended
from dynamo_shared.bus.errors import BusUnavailableError
from dynamo_shared.bus.nats.keeper import Keeper, kept_up
from dynamo_shared.bus.nats.options import NatsOptions
from dynamo_shared.bus.nats.session import NatsSession
from dynamo_shared.bus.protocol import BusHealth

PENDING_MESSAGES = 8192
PENDING_BYTES = 16 << 20
"""Limit per subject of messages that wait in this process; above it the newest are dropped."""

Handler = Callable[[str, bytes], None]
"""Gets subject and payload, on the event loop; must be quick."""

log = structlog.get_logger("dynamo.bus.nats")


class LastingSubscription:
    """A subscription to one subject that survives reconnections until it is closed."""

    def __init__(self, listener: NatsListener, subject: str, handler: Handler) -> None:
        self._listener = listener
        self._handler = handler
        self._subscription: Subscription | None = None
        self.subject = subject

    async def close(self) -> None:
        """Stop listening."""
        await self._listener._drop(self)

    async def _on(self, message: Msg) -> None:
        try:
            self._handler(message.subject, message.data)
        except Exception:
            # One bad message or one failing handler must not stop the other subscriptions.
            log.exception("cannot handle message", subject=message.subject)


class NatsListener:
    """A connection that only listens. It reconnects by itself and then subscribes again."""

    def __init__(self, options: NatsOptions) -> None:
        self._keeper = Keeper(options, counted=False)
        self._subscriptions: dict[LastingSubscription, None] = {}
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Start to connect, without waiting for the connection."""
        self._keeper.start()
        self._task = kept_up("nats-listener", self._keep)
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the connection."""
        if self._task is not None:
            await ended(self._task)
        await self._keeper.close()

    @property
    def health(self) -> BusHealth:
        """Whether the server is available now."""
        return self._keeper.health

    @property
    def trouble(self) -> str:
        """Why the server is unavailable, without secrets; "" if it is available."""
        return self._keeper.trouble

    async def listen(self, subject: str, handler: Handler) -> LastingSubscription:
        """Call the handler with each message on a subject (wildcards allowed), from now or the next connection on."""
        lasting = LastingSubscription(self, subject, handler)
        async with self._lock:
            self._subscriptions[lasting] = None
            try:
                await self._subscribe(self._keeper.session(), lasting)
            except BusUnavailableError:
                log.debug("subscribing after the next connection", subject=subject)
            except BaseException:
                # The caller gets no subscription that it could close.
                del self._subscriptions[lasting]
                raise
        return lasting

    async def _drop(self, lasting: LastingSubscription) -> None:
        async with self._lock:
            self._subscriptions.pop(lasting, None)
            subscription, lasting._subscription = lasting._subscription, None
            if subscription is not None:
                try:
                    await subscription.unsubscribe()
                except (nats.errors.Error, OSError) as error:
                    log.debug("unsubscribing", subject=lasting.subject, error=str(error))

    async def _keep(self) -> None:
        while True:
            session = await self._keeper.wait_session()
            async with self._lock:
                for lasting in self._subscriptions:
                    await self._subscribe(session, lasting)
            await session.ended.wait()

    async def _subscribe(self, session: NatsSession, lasting: LastingSubscription) -> None:
        if lasting._subscription is not None and lasting._subscription._conn is session.client:
            return
        try:
            lasting._subscription = await session.client.subscribe(
                lasting.subject, cb=lasting._on, pending_msgs_limit=PENDING_MESSAGES, pending_bytes_limit=PENDING_BYTES
            )
        except (nats.errors.Error, OSError) as error:
            # The session has ended; the next one subscribes again.
            log.debug("subscribing", subject=lasting.subject, error=str(error))
            lasting._subscription = None
