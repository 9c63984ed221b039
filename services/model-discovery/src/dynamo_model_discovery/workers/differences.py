"""The changes to publish: the differences between the published and the current workers and models. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.wire.discovered import MODELS, WORKERS, ServedModelData, WorkerData, as_object

from dynamo_model_discovery.workers.served_models import served

D = TypeVar("D", WorkerData, ServedModelData)


@dataclass(frozen=True, slots=True)
class PublishedEntry(Generic[D]):
    """A worker or model in STATE."""

    data: D
    uid: str
    version: int
    created: str
    generation: int = 1

    @property
    def obj(self) -> KubeObject:
        """The object for STATE."""
        return as_object(
            self.data,
            uid=self.uid,
            resource_version=str(self.version),
            created=self.created,
            generation=self.generation,
        )


@dataclass(slots=True)
class DiscoveryView:
    """All workers and models in STATE."""

    workers: dict[ObjectKey, PublishedEntry[WorkerData]] = field(default_factory=dict)
    models: dict[ObjectKey, PublishedEntry[ServedModelData]] = field(default_factory=dict)

    def of(self, resource: Resource) -> dict[ObjectKey, PublishedEntry[Any]]:
        """The workers, or the models."""
        return self.workers if resource == WORKERS else self.models

    def apply(self, step: StateChange) -> None:
        """Record that STATE has this change."""
        table = self.of(step.resource)
        if step.removed:
            table.pop(step.key, None)
        else:
            table[step.key] = step.entry


@dataclass(frozen=True, slots=True)
class StateChange:
    """One change of STATE. `event` is the name of its event, "" for none. A removed entry has its last content."""

    resource: Resource
    key: ObjectKey
    entry: PublishedEntry[WorkerData] | PublishedEntry[ServedModelData]
    event: str
    removed: bool = False

    @property
    def event_data(self) -> WorkerData | ServedModelData:
        """Data of the event. A removed model has no workers."""
        data = self.entry.data
        if self.removed and isinstance(data, ServedModelData):
            return msgspec.structs.replace(data, available=False, missing=[], workers={})
        return data


class Stamp(Protocol):
    """Provides uids, versions and times, because this module has neither a clock nor randomness."""

    def uid(self) -> str:
        """A new uid."""

    def version(self) -> int:
        """A resourceVersion that is higher than all earlier ones."""

    def now(self) -> str:
        """The current time, as RFC 3339."""


def changes(view: DiscoveryView, workers: Mapping[ObjectKey, WorkerData], stamp: Stamp) -> list[StateChange]:
    """The changes that bring STATE to these workers and the models that they serve; workers come before models."""
    models = served(workers.values())
    return [
        *_differences(WORKERS, view.workers, workers, _worker_event, stamp),
        *_differences(MODELS, view.models, models, _model_event, stamp),
    ]


def _differences(
    resource: Resource,
    published: Mapping[ObjectKey, PublishedEntry[D]],
    desired: Mapping[ObjectKey, D],
    event_of: Callable[[D | None, D | None], str],
    stamp: Stamp,
) -> Iterator[StateChange]:
    for key in sorted(published.keys() - desired.keys()):
        entry = published[key]
        last = replace(entry, version=stamp.version())
        yield StateChange(resource, key, last, event_of(entry.data, None), removed=True)
    for key, data in sorted(desired.items(), key=lambda item: item[0]):
        before = published.get(key)
        if before is None:
            yield StateChange(
                resource, key, PublishedEntry(data, stamp.uid(), stamp.version(), stamp.now()), event_of(None, data)
            )
        elif before.data != data:
            entry = replace(before, data=data, version=stamp.version(), generation=before.generation + 1)
            yield StateChange(resource, key, entry, event_of(before.data, data))


def _worker_event(before: WorkerData | None, after: WorkerData | None) -> str:
    if before is None:
        return "joined"
    return "left" if after is None else "changed"


def _model_event(before: ServedModelData | None, after: ServedModelData | None) -> str:
    was, is_ = before is not None and before.available, after is not None and after.available
    if was == is_:
        return ""
    return "available" if is_ else "gone"
