"""Publishes workers and models: reads STATE at the start, so that a restart repeats no event, then updates STATE.

An event is published before STATE is written: after a stop in between, the event is repeated, not lost.
"""

import time
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import structlog
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.bus import Bus, EventPublisher, streams
from dynamo_shared.bus.protocol import Message
from dynamo_shared.state import messages
from dynamo_shared.state.last_messages import last_messages
from dynamo_shared.state.messages import ChangeType
from dynamo_shared.state.publisher import StatePublisher
from dynamo_shared.state.versions import Version
from dynamo_shared.wire import subjects
from dynamo_shared.wire.discovered import MODELS, WORKERS, ServedModelData, WorkerData, model_of, worker_of
from dynamo_shared.wire.specifications.workers import MODEL, WORKER

from dynamo_model_discovery.workers.differences import DiscoveryView, PublishedEntry, StateChange

RESOURCES: tuple[Resource, ...] = (WORKERS, MODELS)
#: Number of events that are published before STATE is written: a stop in between repeats at most this number.
CHUNK = 128

log = structlog.get_logger("dynamo.model-discovery.workers")
D = TypeVar("D", WorkerData, ServedModelData)


class Clock:
    """Versions and times of published objects: versions follow the time, so they keep rising after a restart."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._last = 0

    def observed(self, version: int) -> None:
        """STATE has this version."""
        self._last = max(self._last, version)

    def uid(self) -> str:
        """A new uid."""
        return str(uuid.uuid4())

    def version(self) -> int:
        """Milliseconds since 1970, or one more than the last version."""
        self._last = max(self._last + 1, int(self._now() * 1000))
        return self._last

    def now(self) -> str:
        """The current time as RFC 3339 in whole seconds, as in creation times of Kubernetes."""
        return datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Publication:
    """One cluster's workers and models on the bus. `state.run` must run."""

    def __init__(self, bus: Bus, cluster: str, *, now: Callable[[], float] = time.time) -> None:
        self._bus = bus
        self._cluster = cluster
        self._events = EventPublisher(bus, cluster)
        self.stamp = Clock(now)
        self.state = StatePublisher(bus, cluster, truth=self._truth)
        self.view = DiscoveryView()
        self._complete = False
        #: The version of this replica's last marker of workers; empty without one.
        self._mark = ""

    async def load(self) -> None:
        """Read the published objects. Waits until the bus answers."""
        await self.state.load(RESOURCES)
        self.view = DiscoveryView()
        self._mark = ""
        async for message in last_messages(self._bus, self._cluster, RESOURCES):
            if message is not None:
                self._take(message)
            else:
                self.view = DiscoveryView()

    async def publish(self, steps: Sequence[StateChange]) -> None:
        """Publish the changes, events first. Waits while the bus is down. Raises BusClosedError."""
        for begin in range(0, len(steps), CHUNK):
            chunk = steps[begin : begin + CHUNK]
            for step in chunk:
                if step.event:
                    self._events.publish(kind=_kind(step), obj=step.entry.obj, event=step.event, data=step.event_data)
            await self._events.flushed()
            for step in chunk:
                self._put(step)
                self.view.apply(step)

    async def take_over(self) -> None:
        """Announce that this replica publishes from now on. If STATE has all workers, write the marker again, because
        the marker names its writer.
        """
        if self._complete:
            await self.mark_complete()

    async def is_taken_over(self) -> bool:
        """Whether another replica has taken over. Raises BusError."""
        mine = self._mark
        if not mine:
            return False
        last = await self._bus.last_message(streams.STATE, subjects.synced_subject(self._cluster, WORKERS.id))
        if last is None or self._mark != mine:
            return False
        try:
            return messages.decode_marker(last.payload).resource_version != mine
        except ValueError:
            return False

    async def mark_complete(self) -> None:
        """Mark STATE as complete: it has all workers and models."""
        self._mark = ""
        versions = {resource: str(self.stamp.version()) for resource in RESOURCES}
        for resource, version in versions.items():
            await self.state.mark_synced(resource, version)
        self._mark = versions[WORKERS]

    async def start_over(self) -> None:
        """Publish everything again after STATE was lost, without events, because no worker has changed.

        STATE may have workers that have ended, for example from a backup: they are removed.
        """
        self.state.start_over()
        self._mark = ""
        await self.state.load(RESOURCES)
        for resource in RESOURCES:
            entries = self.view.of(resource)
            for entry in entries.values():
                self.state.put(resource, entry.obj)
            await self.state.sweep(resource, entries)

    async def _truth(self, resource: Resource, key: ObjectKey) -> KubeObject | None:
        entry = self.view.of(resource).get(key)
        return entry.obj if entry is not None else None

    def _put(self, step: StateChange) -> None:
        entry = step.entry
        if step.removed:
            self.state.delete(step.resource, step.key, Version(entry.uid, entry.version, entry.created))
        else:
            self.state.put(step.resource, entry.obj, ChangeType.ADDED if entry.generation == 1 else ChangeType.MODIFIED)

    def _take(self, message: Message) -> None:
        if subjects.parse_synced(message.subject) is not None:
            self._complete = True
            return
        version = messages.version_in(message.headers)
        self.stamp.observed(version.resource_version)
        if messages.is_tombstone(message.headers):
            return
        try:
            _, resource_id, key = subjects.parse_state(message.subject)
            obj = messages.decode_object(message.payload, message.headers)
            generation = int(obj["metadata"].get("generation") or 1)
            if resource_id == WORKERS.id:
                self.view.workers[key] = _entry(worker_of(obj), version, generation)
            else:
                self.view.models[key] = _entry(model_of(obj), version, generation)
        except (ValueError, KeyError, TypeError) as error:
            # From another release or program: it remains until a worker of that name overwrites it.
            log.warning("unreadable worker in STATE", subject=message.subject, error=str(error))


def _entry(data: D, version: Version, generation: int) -> PublishedEntry[D]:
    return PublishedEntry(data, version.uid, version.resource_version, version.created, generation)


def _kind(step: StateChange) -> str:
    return WORKER if step.resource == WORKERS else MODEL
