"""Publishes the markers that end a list: STATE has all objects of a resource."""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from dynamo_shared.api.resources import Resource
from dynamo_shared.bus import metrics
from dynamo_shared.state import messages
from dynamo_shared.state.messages import ChangeType
from dynamo_shared.state.publisher.desired import Desired
from dynamo_shared.state.publisher.stream import StateStream
from dynamo_shared.wire import cloudevents, subjects


class _Marker(NamedTuple):
    sequence: int
    resource: Resource
    list_version: str
    served: bool


class Markers:
    """Publishes and remembers markers."""

    def __init__(self, stream: StateStream, desired: Desired, now: Callable[[], datetime]) -> None:
        self._stream = stream
        self._desired = desired
        self._now = now
        self._published: dict[str, _Marker] = {}

    async def publish(self, resource: Resource, list_version: str, *, served: bool) -> None:
        """Publish a marker after all queued messages of the resource are acknowledged."""
        await self._desired.outbox.flushed(resource)
        marker = messages.SyncedMarker(
            resource=resource.id,
            resource_version=list_version,
            count=self._desired.ledger.count(resource),
            time=cloudevents.timestamp(self._now()),
            served=served,
        )
        headers = messages.synced_headers(marker)
        subject = subjects.synced_subject(self._stream.cluster, resource.id)

        async def publish() -> None:
            ack = await self._stream.bus.publish(subject, messages.encode_marker(marker), headers=headers)
            self._published[subject] = _Marker(ack.sequence, resource, list_version, served)
            self._stream.acknowledged(ack)

        await self._stream.retried(publish)
        metrics.STATE_PUBLISHED.labels(resource.id, ChangeType.SYNCED.value).inc()

    async def verify(self, subject: str, sequence: int) -> None:
        """Publish a marker again if another message has replaced it.

        If this watcher has published no marker yet, nothing is done: an earlier watcher has listed the resource, this
        one has not.
        """
        marker = self._published.get(subject)
        if marker is not None and marker.sequence != sequence:
            await self.publish(marker.resource, marker.list_version, served=marker.served)

    def clear(self) -> None:
        """Forget all published markers."""
        self._published.clear()
