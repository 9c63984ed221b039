"""Keeps one session open: connects, waits for its end, and connects again after growing pauses, until closed."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial

import structlog

from dynamo_shared.aio import Backoff, ended, supervised
from dynamo_shared.bus import metrics
from dynamo_shared.bus.errors import BusClosedError, BusUnavailableError
from dynamo_shared.bus.nats.options import NatsOptions
from dynamo_shared.bus.nats.session import NatsSession
from dynamo_shared.bus.protocol import BusHealth

FIRST_PAUSE = 0.05
"""Seconds before the second attempt: a restarting server is available again within a fraction of a second."""

LAST_PAUSE = 5.0

log = structlog.get_logger("dynamo.bus.nats")


def kept_up(part: str, run: Callable[[], Awaitable[object]]) -> asyncio.Task[None]:
    """Start a task of a connection that runs until cancelled: failures are logged, and the work is restarted."""
    supervising = supervised(
        run,
        lambda error: log.error("background task failed, restarting", part=part, exc_info=error),
        lambda: log.info("background task works again", part=part),
    )
    return asyncio.create_task(supervising, name=part)


class Keeper:
    """Owns the current session. `counted`: whether the metrics of the bus count it; they count the platform's own."""

    def __init__(self, options: NatsOptions, *, counted: bool = True) -> None:
        self._options = options
        self._counted = counted
        self._session: NatsSession | None = None
        self._connected = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._listeners: list[Callable[[BusHealth], None]] = []
        self._closed = False
        self.trouble = "not connected yet"

    def start(self) -> None:
        """Start to connect."""
        self._task = kept_up("nats-keeper", self._keep)

    @property
    def health(self) -> BusHealth:
        """Whether a session is connected."""
        return BusHealth.CONNECTED if self._connected.is_set() else BusHealth.DEGRADED

    def on_health(self, listener: Callable[[BusHealth], None]) -> Callable[[], None]:
        """Register a listener for each change; call the returned function to remove it."""
        self._listeners.append(listener)
        return partial(self._listeners.remove, listener)

    def session(self) -> NatsSession:
        """The current session; BusUnavailableError if there is none."""
        if self._closed:
            raise BusClosedError("the bus is closed")
        if self._session is None or self._session.ended.is_set():
            raise BusUnavailableError(f"NATS is unavailable: {self.trouble or 'the connection was lost'}")
        return self._session

    async def wait_session(self) -> NatsSession:
        """Wait for a session and return it."""
        while True:
            if self._closed:
                raise BusClosedError("the bus is closed")
            await self._connected.wait()
            if self._session is not None and not self._session.ended.is_set():
                return self._session
            # The session has just ended and the keeper has not noticed yet.
            await asyncio.sleep(0.01)

    async def close(self) -> None:
        """End the session and stop trying to connect."""
        self._closed = True
        if self._task is not None:
            await ended(self._task)
        if self._session is not None:
            self._session.fail_waiting(BusClosedError("the bus is closed"))
            await self._session.close()
            self._session = None
        # Wakes tasks that wait for a session; they then raise BusClosedError.
        self._connected.set()

    async def _keep(self) -> None:
        servers = list(self._options.servers)
        # Clients that start together must not all choose the first server.
        random.shuffle(servers)
        attempt, backoff, first = 0, Backoff(FIRST_PAUSE, LAST_PAUSE), True
        clock = asyncio.get_running_loop().time
        while True:
            try:
                session = await NatsSession.open(self._options, servers[attempt % len(servers)])
            except BusUnavailableError as error:
                if str(error) != self.trouble:
                    log.warning("cannot connect to NATS", error=str(error))
                self.trouble = str(error)
                attempt += 1
                if attempt % len(servers) == 0:
                    await asyncio.sleep(backoff.next())
                continue
            except Exception as error:
                # Its text may quote what it could not handle, for example a secret.
                self.trouble = f"an attempt to connect ended with an unexpected {type(error).__name__}: see the log"
                raise
            if not first and self._counted:
                metrics.RECONNECTS.inc()
            first = False
            since = clock()
            self._session, self.trouble = session, ""
            self._connected.set()
            self._count(1)
            self._notify(BusHealth.CONNECTED)
            log.info("connected to NATS", server=servers[attempt % len(servers)])
            await session.ended.wait()
            self._connected.clear()
            self._count(0)
            self.trouble = "the connection was lost"
            log.warning("connection to NATS lost")
            self._notify(BusHealth.DEGRADED)
            await session.close()
            if not backoff.worked_for(clock() - since):
                await asyncio.sleep(backoff.next())

    def _count(self, connected: int) -> None:
        if self._counted:
            metrics.CONNECTED.set(connected)

    def _notify(self, health: BusHealth) -> None:
        for listener in list(self._listeners):
            listener(health)
