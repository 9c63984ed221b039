"""Corrects a subject of STATE: replaces a message of another client with the current object."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import structlog

from dynamo_shared.aio import Backoff
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.bus import metrics, streams
from dynamo_shared.bus.errors import BusUnavailableError
from dynamo_shared.bus.protocol import Message
from dynamo_shared.state import messages
from dynamo_shared.state.messages import ChangeType
from dynamo_shared.state.publisher.desired import Desired
from dynamo_shared.state.publisher.ledger import LastMessage, resource_of
from dynamo_shared.state.publisher.outbox import StateMessage, object_message, tombstone
from dynamo_shared.state.publisher.stream import StateStream
from dynamo_shared.state.versions import Version
from dynamo_shared.wire import subjects

Truth: TypeAlias = Callable[[Resource, ObjectKey], Awaitable[KubeObject | None]]
"""Returns the current object, or None."""

_UNKNOWN = Version("unknown", 0, "")
_MOST = 2**63 - 1

log = structlog.get_logger("dynamo.bus.state")


class Correction:
    """Compares subjects with `truth` and queues corrections. Without `truth`, the put objects are the truth."""

    def __init__(
        self, stream: StateStream, desired: Desired, truth: Truth | None, backoff: Backoff, clock: Callable[[], float]
    ) -> None:
        self._stream = stream
        self._bus = stream.bus
        self._desired = desired
        self._ledger = desired.ledger
        self._outbox = desired.outbox
        self._truth = truth
        self._backoff = backoff
        self._clock = clock

    async def verify(self, resource: Resource | None, subject: str) -> bool:
        """Correct one subject, unless the suspicion came from the time of the reading and the subject is as published.

        `resource` is None if the resource is not published here. Returns False if the caller must try again.
        """
        last = await self._bus.last_message(streams.STATE, subject)
        if resource is None or resource_of(subject) is None:
            # No object can have this subject.
            if last is not None and not messages.is_tombstone(last.headers):
                await self._remove_unknown(subject)
            return True
        known = self._ledger.get(resource, subject)
        if self._outbox.newest(subject) is not None:
            return True
        if (last.sequence if last is not None else 0) == (known.sequence if known is not None else 0):
            return True
        if self._truth is None:
            self._stream.declare_lost("another client has published")
            return True
        try:
            obj = await self._truth(resource, subjects.parse_state(subject).key)
        except Exception as error:
            log.warning("cannot correct object in STATE, will be retried", subject=subject, error=str(error))
            return False
        metrics.STATE_CORRECTED.labels(resource.id).inc()
        log.warning("object in STATE differs from what was published, correcting", subject=subject)
        self._adopt(resource, subject, last)
        if self._outbox.newest(subject) is None:
            self._restore(resource, subject, obj)
        return True

    async def compare(self, message: StateMessage, unanswered: StateMessage) -> bool:
        """After a wrong sequence: read what STATE has. Returns whether nothing remains to be done for this version.

        `unanswered`: an earlier message that STATE may have, because its acknowledgement may be lost; or the same one.
        """
        subject, resource = message.subject, message.resource
        try:
            last = await self._bus.last_message(streams.STATE, subject)
        except BusUnavailableError:
            return False
        if last is None:
            before = self._ledger.get(resource, subject)
            self._ledger.drop(resource, subject)
            if before is not None and not before.deleted:
                self._stream.declare_lost("an object is missing from STATE")
            return False
        own = next((each for each in (message, unanswered) if _is_stored(each, last)), None)
        if own is not None or self._truth is None:
            self._adopt(resource, subject, last)
            # The publisher's own message, whose acknowledgement was lost, or an equal one of another watcher.
            return own is message
        log.info("another client has published an object to STATE", subject=subject)
        newest = self._outbox.newest(subject)
        try:
            obj = await self._truth(resource, subjects.parse_state(subject).key)
        except Exception as error:
            log.warning("cannot read the current object, will be retried", subject=subject, error=str(error))
            await asyncio.sleep(self._backoff.next())
            return False
        if self._outbox.newest(subject) is newest:
            metrics.STATE_CORRECTED.labels(resource.id).inc()
            # Only after the answer, and only if nothing came after the question: otherwise the next publish would not
            # be refused, and a watcher that has lost its election without knowing it would publish an outdated object.
            self._adopt(resource, subject, last)
            # A message that waited before the question is also at most as new as the answer.
            self._replace(newest or message, obj, last)
        return True

    def _adopt(self, resource: Resource, subject: str, last: Message | None) -> None:
        """Make the existing message the expected one of the next publish."""
        if last is None:
            self._ledger.drop(resource, subject)
            return
        known = LastMessage(last.sequence, messages.version_in(last.headers), messages.is_tombstone(last.headers))
        self._ledger.set(resource.id, subject, known)

    def _restore(self, resource: Resource, subject: str, obj: KubeObject | None) -> None:
        if obj is not None:
            self._outbox.add(object_message(subject, resource, obj, ChangeType.MODIFIED, self._clock()))
        elif not self._desired.is_gone(resource, subject):
            known = self._ledger.get(resource, subject)
            version = known.version if known is not None and known.version.uid else _UNKNOWN
            version = version._replace(resource_version=min(version.resource_version, _MOST))
            self._outbox.add(tombstone(subject, resource, version, self._clock()))

    def _replace(self, newest: StateMessage, obj: KubeObject | None, last: Message) -> None:
        """Queue the truth in place of the sent or waiting message, unless STATE already has it."""
        subject, resource, received = newest.subject, newest.resource, newest.received
        if obj is None:
            message, is_said = (
                tombstone(subject, resource, newest.version, received),
                messages.is_tombstone(last.headers),
            )
        else:
            message = object_message(subject, resource, obj, ChangeType.MODIFIED, received)
            is_said = last.payload == message.payload
        if self._outbox.is_waiting(subject) or not is_said:
            self._outbox.add(message)

    async def _remove_unknown(self, subject: str) -> None:
        log.warning("removing message without an object from STATE", subject=subject[:500])
        headers = messages.tombstone_headers(_UNKNOWN)
        self._stream.acknowledged(await self._bus.publish(subject, b"", headers=headers, ttl=streams.TOMBSTONE_TTL))


def _is_stored(message: StateMessage, last: Message) -> bool:
    return last.payload == message.payload and messages.version_in(last.headers)[:2] == message.version[:2]
