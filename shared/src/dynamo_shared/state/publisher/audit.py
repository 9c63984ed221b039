"""Checks whether STATE has the expected messages: foreign messages and a storage that was set back let no publish fail.

Every 15 seconds the stream's sequence is compared with the sequence expected from the publisher's own publishes. The
sequences of all subjects are read after each reconnection, within a minute after another client published, and at least
every five minutes. A message that is not the published one is corrected from `truth`. If there are many of them, STATE
is lost, and everything is read and listed again.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

import structlog

from dynamo_shared.api.resources import Resource
from dynamo_shared.bus.errors import BusClosedError, BusError, BusUnavailableError
from dynamo_shared.bus.protocol import BusHealth, Message
from dynamo_shared.state import messages
from dynamo_shared.state.last_messages import last_messages
from dynamo_shared.state.publisher.correction import Correction
from dynamo_shared.state.publisher.desired import Desired
from dynamo_shared.state.publisher.ledger import LastMessage, resource_of
from dynamo_shared.state.publisher.markers import Markers
from dynamo_shared.state.publisher.stream import LAST_RETRY, StateStream
from dynamo_shared.wire import subjects

INTERVAL = 15.0
"""Seconds between checks whether STATE is still the same stream and has the expected messages."""

FOREIGN_INTERVAL = 60.0
"""Seconds between readings of all sequences while other clients also publish to the stream (model-discovery does)."""

SCAN_INTERVAL = 300.0
"""Seconds between readings of all sequences if no other client publishes."""

APPLIED_WITHIN = 1.0
"""Seconds within which a new leader of the stream must apply what was acknowledged before its election."""

MOST_SUSPECTS = 256
"""Up to this many objects are corrected one by one; if there are more, STATE is lost. Of subjects without an object,
this many are cleared at a time.
"""

log = structlog.get_logger("dynamo.bus.state")


class Audit:
    """`resources`: the published resources, by id."""

    def __init__(
        self,
        stream: StateStream,
        desired: Desired,
        markers: Markers,
        correction: Correction,
        *,
        resources: Mapping[str, Resource],
        clock: Callable[[], float],
    ) -> None:
        self._stream = stream
        self._desired = desired
        self._ledger = desired.ledger
        self._markers = markers
        self._correction = correction
        self._resources = resources
        self._clock = clock
        self._scanned_at = clock()
        self._scan_due = False

    async def run(self, interval: float) -> None:
        """Audit at intervals and immediately after each reconnection; retry soon after a failure.

        A publish may not reveal that data was lost: a reader may have recreated the stream before it, and the empty
        stream stores an object that STATE never had without an error.
        """
        reconnected = asyncio.Event()
        forget = self._stream.bus.on_health(lambda health: reconnected.set() if health is BusHealth.CONNECTED else None)
        pause = interval
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await reconnected.wait()
                self._scan_due = self._scan_due or reconnected.is_set()
                reconnected.clear()
                pause = min(interval, LAST_RETRY)
                try:
                    await self.check()
                    pause = interval
                except BusUnavailableError as error:
                    log.debug("cannot check STATE, will be retried", error=str(error))
                except BusClosedError:
                    raise
                except BusError as error:
                    log.warning("cannot check STATE", error=str(error))
        finally:
            forget()

    async def check(self) -> None:
        """Check once whether STATE has the expected messages. BusUnavailableError if the bus does not answer."""
        await self._stream.adopt()
        await self._stream.declare()
        stream, lacking = await self._stream.observed(self._ledger.total())
        if lacking:
            # A newly elected leader may still be applying acknowledged messages.
            await asyncio.sleep(APPLIED_WITHIN)
            stream, lacking = await self._stream.observed(self._ledger.total())
        if lacking:
            self._stream.declare_lost(lacking)
        if self._stream.lost.is_set():
            return
        # If the clock was set back, the next reading must not wait until the clock has caught up.
        age = abs(self._clock() - self._scanned_at)
        foreign = self._stream.has_foreign(stream)
        if self._scan_due or age >= SCAN_INTERVAL or (foreign and age >= FOREIGN_INTERVAL):
            await self.scan()

    async def set_baseline(self) -> int:
        """Record that all sequences are read now. Returns the stream's last sequence."""
        self._scanned_at = self._clock()
        return await self._stream.set_baseline()

    async def scan(self) -> None:
        """Read the sequences of all subjects, and correct subjects whose message is not the published one."""
        # Due until it is complete: an interrupted scan is repeated at the next check.
        self._scan_due = True
        if self._ledger.loading:
            return
        suspects = await self._suspects(await self.set_baseline())
        if self._ledger.loading:
            # Loading has begun meanwhile: subjects that the ledger no longer knew are not suspect.
            return
        # Starting over would not remove these from STATE.
        unreadable = [subject for subject, resource_id in suspects.items() if not resource_id]
        for subject in unreadable:
            del suspects[subject]
        for subject in unreadable[:MOST_SUSPECTS]:
            await self._correction.verify(None, subject)
        later = len(unreadable) > MOST_SUSPECTS
        if len(suspects) > MOST_SUSPECTS:
            self._stream.declare_lost(f"{len(suspects)} objects differ from what was published")
        else:
            for subject, resource_id in suspects.items():
                if not await self._correction.verify(self._resources[resource_id], subject):
                    later = True
        self._scan_due = later

    async def _suspects(self, last: int) -> dict[str, str]:
        """Subjects whose message is not the one that was published here, with the id of their resource.

        `last`: the stream's last sequence before the reading. Messages published here during the reading may be in it
        or not.
        """
        suspects: dict[str, str] = {}
        met: set[str] = set()
        marked: list[Message] = []
        markers = {subjects.synced_subject(self._stream.cluster, resource_id) for resource_id in self._resources}
        async for message in last_messages(
            self._stream.bus, self._stream.cluster, self._resources.values(), headers_only=True
        ):
            if message is None:
                suspects.clear()
                met.clear()
                marked.clear()
                continue
            met.add(message.subject)
            if message.subject in markers:
                marked.append(message)
            elif not self._is_known(message):
                suspects[message.subject] = resource_of(message.subject) or ""
        # Only after the reading: if publishing here were cancelled while the reading pauses, the reading would stay open.
        for each in marked:
            await self._markers.verify(each.subject, each.sequence)
        unread = await self._ledger.unread(met)
        # The ledger may have forgotten some of them meanwhile.
        suspects |= {subject: id_ for id_, subject in unread if self._known(id_, subject) is not None}
        return {subject: id_ for subject, id_ in suspects.items() if not self._is_news(id_, subject, last)}

    def _is_news(self, resource_id: str, subject: str, last: int) -> bool:
        """Whether a message was published here after this sequence of the stream, or is queued."""
        if self._desired.outbox.newest(subject) is not None:
            return True
        known = self._known(resource_id, subject)
        return known is not None and known.sequence > last

    def _known(self, resource_id: str, subject: str) -> LastMessage | None:
        resource = self._resources.get(resource_id)
        return self._ledger.get(resource, subject) if resource is not None else None

    def _is_known(self, message: Message) -> bool:
        known = self._known(resource_of(message.subject) or "", message.subject)
        sequence, gone = (known.sequence, known.deleted) if known is not None else (0, True)
        return sequence == message.sequence or (gone and messages.is_tombstone(message.headers))
