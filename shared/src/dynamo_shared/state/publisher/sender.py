"""Publishes the outbox, with one window for all subjects, and handles each answer."""

import asyncio
import uuid
from collections.abc import Callable
from functools import cache, partial

import structlog

from dynamo_shared.aio import Backoff, Pauses, all_of
from dynamo_shared.bus import metrics, streams
from dynamo_shared.bus.errors import BusClosedError, BusError, BusUnavailableError, WrongSequenceError
from dynamo_shared.bus.protocol import Ack, BusHealth, OutgoingMessage
from dynamo_shared.state.publisher.correction import Correction
from dynamo_shared.state.publisher.desired import Desired
from dynamo_shared.state.publisher.ledger import LastMessage
from dynamo_shared.state.publisher.outbox import StateMessage
from dynamo_shared.state.publisher.refusals import Refusals
from dynamo_shared.state.publisher.stream import StateStream

WINDOW = 256
"""Publishes under way at once. This keeps the server busy; with more, each only waits longer."""

STALLED_AFTER = 6
"""Failures in a row (two seconds, in which a server starts) after which a stalled STATE is reported."""

NO_ANSWER = "; if this lasts, see the log of NATS: after a full disk it must be restarted"
"""NATS 2.15 does not answer a publish that it cannot write, and writes no more, also when its disk has space again."""

YIELD_EVERY = 32
"""Publishes after which other tasks run; a few milliseconds."""

log = structlog.get_logger("dynamo.bus.state")

_published = cache(metrics.STATE_PUBLISHED.labels)


class Sender:
    """Empties the outbox."""

    def __init__(
        self,
        stream: StateStream,
        desired: Desired,
        correction: Correction,
        refusals: Refusals,
        *,
        backoff: Backoff,
        clock: Callable[[], float],
    ) -> None:
        self._stream = stream
        self._ledger = desired.ledger
        self._outbox = desired.outbox
        self._correction = correction
        self._refusals = refusals
        self._backoff = backoff
        self._clock = clock
        self._troubled: list[tuple[StateMessage, BusError]] = []
        self._unanswered: dict[str, StateMessage] = {}
        """by subject: a message that STATE may have, because its acknowledgement may be lost"""
        self.start_over()

    def start_over(self) -> None:
        """Use new message ids: a lost message must be stored again, and must not count as a duplicate."""
        #: Random, so that no other client can publish under these message ids first and make these messages duplicates.
        self._nonce = uuid.uuid4().hex
        self._unanswered.clear()

    async def run(self) -> None:
        """Publish until cancelled."""
        while True:
            await self._outbox.wake.wait()
            self._outbox.wake.clear()
            while self._troubled:
                await self._repair()
            await self._send_ready()

    async def _send_ready(self) -> None:
        pauses = Pauses(YIELD_EVERY)
        while self._outbox.is_ready and self._outbox.under_way < WINDOW and not self._troubled:
            message = self._outbox.take()
            try:
                future = await self._send(message)
            except BusError as error:
                self._fail(message, error)
                return
            future.add_done_callback(partial(self._answered, message))
            if pauses.due():
                await asyncio.sleep(0)

    async def _send(self, message: StateMessage) -> asyncio.Future[Ack]:
        known = self._ledger.get(message.resource, message.subject)
        version, expected = message.version, known.sequence if known is not None else 0
        outgoing = OutgoingMessage(
            message.subject,
            message.payload,
            headers=message.headers,
            # With the sequence: the same version is published again if another message replaced it.
            msg_id=f"{version.uid[:64]}-{version.resource_version}-{message.change.value}-{expected}-{self._nonce}",
            expected_last_subject_sequence=expected,
            ttl=streams.TOMBSTONE_TTL if message.deleted else 0.0,
        )
        return await self._stream.bus.send(outgoing)

    def _answered(self, message: StateMessage, future: asyncio.Future[Ack]) -> None:
        error = BusUnavailableError("cancelled") if future.cancelled() else future.exception()
        if error is not None:
            if type(error) is BusUnavailableError:
                self._unanswered[message.subject] = message
            self._fail(message, error if isinstance(error, BusError) else BusError(str(error)))
            return
        ack = future.result()
        self._backoff.reset()
        self._stream.report("")
        self._stream.acknowledged(ack)
        known = LastMessage(ack.sequence, message.version, deleted=message.deleted)
        self._ledger.set(message.resource.id, message.subject, known)
        self._refusals.remove(message.subject)
        self._unanswered.pop(message.subject, None)
        _published(message.resource.id, message.change.value).inc()
        metrics.STATE_LATENCY.observe(self._clock() - message.received)
        self._outbox.settle(message)

    def _fail(self, message: StateMessage, error: BusError) -> None:
        self._troubled.append((message, error))
        self._outbox.wake.set()

    async def _repair(self) -> None:
        """Handle publishes that were not acknowledged: each is settled or queued again."""
        troubled, self._troubled = self._troubled, []
        unavailable = [error for _, error in troubled if isinstance(error, BusUnavailableError)]
        if unavailable:
            await self._recover(unavailable[0])
        else:
            # STATE answers: messages that it already has need no acknowledgement, and refusals are reported per object.
            self._stream.report("")
        fenced = [message for message, error in troubled if isinstance(error, WrongSequenceError)]
        again = [message for message, error in troubled if isinstance(error, BusUnavailableError)]
        unanswered = self._unanswered
        done = await all_of(
            self._correction.compare(message, unanswered.pop(message.subject, message)) for message in fenced
        )
        again += [message for message, is_done in zip(fenced, done, strict=True) if not is_done]
        for message, error in troubled:
            if isinstance(error, BusClosedError):
                raise error
            if not isinstance(error, BusUnavailableError | WrongSequenceError):
                self._refusals.add(message, error)
        for message in again:
            # If a newer version waits, that one is sent instead.
            self._outbox.retry(message)
        for message, _ in troubled:
            self._outbox.settle(message)

    async def _recover(self, error: BusError) -> None:
        """Wait until the bus is available and the stream exists."""
        metrics.PUBLISH_ERRORS.labels(streams.STATE.name, "unavailable").inc()
        log.debug("publishing to STATE is delayed", error=str(error), backlog=len(self._outbox))
        await asyncio.sleep(self._backoff.next())
        if self._backoff.failures >= STALLED_AFTER:
            is_connected = self._stream.bus.health is BusHealth.CONNECTED
            hint = NO_ANSWER if is_connected and type(error) is BusUnavailableError else ""
            self._stream.report(f"cannot publish objects, {len(self._outbox)} are waiting: {error}{hint}")
        await self._stream.retried(self._stream.adopt)
