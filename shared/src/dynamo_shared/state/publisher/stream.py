"""The stream of STATE: whether it is still the one that was published to, and has all acknowledged messages."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from dynamo_shared.aio import Backoff
from dynamo_shared.bus import metrics, streams
from dynamo_shared.bus.errors import BusUnavailableError, StreamNotFoundError
from dynamo_shared.bus.protocol import Ack, Bus, BusHealth, StreamState
from dynamo_shared.bus.streams import StreamSpec

FIRST_RETRY = 0.05
LAST_RETRY = 5.0

log = structlog.get_logger("dynamo.bus.state")


class StateStream:
    """STATE of one cluster on a bus: declares its streams, and compares STATE with what was published to it."""

    def __init__(self, bus: Bus, cluster: str, declares: tuple[StreamSpec, ...]) -> None:
        self.bus = bus
        self.cluster = cluster
        self._declares = declares
        self._highest = 0
        """the highest observed sequence"""
        self._baseline = 0
        """the stream's last sequence at the last complete reading; `_own` counts our own publishes since then"""
        self._own = 0
        self.incarnation = ""
        self.lost = asyncio.Event()
        self._stalled = ""
        self.on_stalled: Callable[[str], None] = lambda _: None

    def start_over(self) -> None:
        """Forget what the stream had."""
        self._highest = 0
        self.lost.clear()

    async def declare(self) -> None:
        """Create the missing streams."""
        await self.bus.declare(*self._declares)

    async def adopt(self) -> None:
        """Declare the streams if STATE is missing, and check whether it is still the one that was published to."""
        try:
            stream = await self.state()
        except StreamNotFoundError:
            await self.declare()
            stream = await self.state()
        if self.incarnation and stream.incarnation != self.incarnation:
            self.declare_lost("the stream was recreated")
        self.incarnation = stream.incarnation

    async def state(self) -> StreamState:
        """The state of the stream; StreamNotFoundError, BusUnavailableError."""
        return await self.bus.stream_state(streams.STATE)

    async def set_baseline(self) -> int:
        """Everything is read from here on: later messages are our own or foreign. Returns the last sequence."""
        stream = await self.state()
        self._baseline, self._own = stream.last_sequence, 0
        self._highest = max(self._highest, stream.last_sequence)
        return self._baseline

    def acknowledged(self, ack: Ack) -> None:
        """Record that the stream stored a message that was published here."""
        if not ack.duplicate:
            self._own += 1
        self._highest = max(self._highest, ack.sequence)

    def has_foreign(self, stream: StreamState) -> bool:
        """Whether other clients have published since the baseline."""
        return stream.last_sequence - self._baseline > self._own

    async def observed(self, objects: int) -> tuple[StreamState, str]:
        """The stream's state, and what it lacks; "" if it has all acknowledged messages, with `objects` objects."""
        # Read before the request: messages acknowledged during it may be missing from the answer.
        highest, stream = self._highest, await self.state()
        if stream.messages < objects:
            return stream, f"it has {stream.messages} messages, expected at least {objects}"
        if stream.last_sequence < highest:
            return stream, f"its last sequence went back from {highest} to {stream.last_sequence}"
        return stream, ""

    def declare_lost(self, cause: str) -> None:
        """STATE has lost messages: everything must be published again."""
        if not self.lost.is_set():
            log.warning("STATE has lost messages", cause=cause)
            metrics.STATE_LOST.inc()
            self.lost.set()

    def report(self, stalled: str) -> None:
        """Why STATE accepts nothing, "" if it does; observers get each change."""
        if stalled != self._stalled:
            if not self._stalled:
                log.warning("STATE accepts no objects", reason=stalled)
            elif not stalled:
                log.info("STATE accepts objects again")
            self._stalled = stalled
            self.on_stalled(stalled)

    async def retried(self, work: Callable[[], Awaitable[object]]) -> None:
        """Repeat the work until the bus answers. A server that answers with an error, such as full storage, is reported."""
        backoff, reported = Backoff(FIRST_RETRY, LAST_RETRY), ""
        while True:
            try:
                await work()
            except StreamNotFoundError:
                with suppress(BusUnavailableError):
                    await self.adopt()
            except BusUnavailableError as error:
                if self.bus.health is BusHealth.CONNECTED and str(error) != reported:
                    reported = str(error)
                    self.report(reported)
                await self.bus.wait_connected()
            else:
                if reported:
                    self.report("")
                return
            await asyncio.sleep(backoff.next())
