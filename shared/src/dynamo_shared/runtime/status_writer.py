"""Writes status: only changes; important ones at once, others a little later so that counts settle into one write."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import structlog

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource, key_of
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import KubeError, NotFound, UnknownField
from dynamo_shared.state.cache import ObjectCache
from dynamo_shared.state.memory import ObjectMemory

log = structlog.get_logger("dynamo.runtime")

#: How long a status that only reports progress may wait for further progress. Seconds.
SETTLE = 0.3


@dataclass(slots=True)
class StatusWriter:
    """Server-side apply of `/status`; for changes that can wait, at most one per object and `SETTLE`."""

    kube: KubeClient
    cache: ObjectCache
    clock: Callable[[], float]
    others: frozenset[str] = frozenset()
    """types of conditions that other services write into the same statuses"""
    _waiting: ObjectMemory[float] = field(init=False)
    """by uid of an object: when to write what a reconcile reported"""
    _observed: ObjectMemory[float] = field(init=False)
    """by uid of an object: when to write observed progress"""
    _reduced: ObjectMemory[tuple[KubeObject, KubeObject]] = field(init=False)
    """by uid of an object: a status that an older CRD refuses, and the part of it that the CRD accepts"""
    _outdated: set[str] = field(init=False, default_factory=set)
    """resources with such a CRD"""

    def __post_init__(self) -> None:
        self._reduced = self.cache.memory()
        self._waiting, self._observed = self.cache.memory(), self.cache.memory()

    def progress(self, resource: Resource, key: ObjectKey) -> float:
        """Record progress that an object's status only reports; returns the seconds to wait for more before a
        reconcile.

        The wait counts from here, so that this reconcile writes the status, and no second one is needed.
        """
        obj = self.cache.get(resource, key)
        return SETTLE if obj is None else self._until(self._observed, obj["metadata"]["uid"], SETTLE)

    async def write(
        self,
        resource: Resource,
        obj: KubeObject,
        status: KubeObject,
        *,
        urgent: bool,
        settle: float = SETTLE,
        heeds_progress: bool = True,
        report: Callable[[], None] = lambda: None,
    ) -> float | None:
        """Set the object's status to `status`; if it only reports progress, wait at most `settle` seconds for more.

        If `heeds_progress`, observed progress is not delayed beyond the time that it has already waited.
        `report` is called right before the write: if the process stops in between, the events are repeated under the
        same id instead of being lost. Returns None if the status is up to date, otherwise the seconds until the next
        reconcile.
        """
        metadata = obj["metadata"]
        uid = metadata["uid"]
        if self.cache.get_by_uid(resource, key_of(obj), uid) is None:
            # The object's deletion was reported during this reconcile; nothing may be reported about it afterwards.
            return None
        full, reduced = self._reduced.get(uid, ({}, {}))
        if self._own_part(obj.get("status")) == (reduced if full == status else status):
            self._forget(uid)
            return None
        if not (urgent or _state_changed(obj.get("status", {}), status)):
            wait = self._until(self._waiting, uid, settle)
            if heeds_progress and uid in self._observed:
                wait = min(wait, self._until(self._observed, uid, SETTLE))
            if wait > 0:
                return wait
        self._forget(uid)
        report()
        try:
            written = await self._apply(resource, obj, status)
        except NotFound:
            # It was deleted, and the event has not arrived yet.
            self.cache.remove(resource, key_of(obj), uid)
            return None
        except KubeError:
            # The retry must not wait for more progress: for the queue that is a success, and its delays start over.
            self._waiting.keep(obj, self.clock())
            raise
        self.cache.put(resource, written)
        return None

    async def _apply(self, resource: Resource, obj: KubeObject, status: KubeObject) -> KubeObject:
        """Apply the status as far as the cluster's CRD supports it, which may be older than this release; returns the
        object.

        The API server refuses a whole apply because of one unknown field. A dry run of a merge shows which fields the
        CRD lacks.
        """
        try:
            return await self.kube.apply_status(resource, _patch(resource, obj, status))
        except UnknownField as error:
            if resource.id not in self._outdated:
                self._outdated.add(resource.id)
                words = "the CRD is older than this release and lacks status fields; upgrade the chart dynamo-crds"
                log.warning(words, resource=resource.id, error=error.message)
        trial = await self.kube.try_status(resource, _patch(resource, obj, status))
        reduced = _common(status, trial.get("status") or {})
        self._reduced.keep(obj, (status, reduced))
        return await self.kube.apply_status(resource, _patch(resource, obj, reduced))

    def _until(self, dues: dict[str, float], uid: str, settle: float) -> float:
        """Seconds until an object's progress must be written; of several waits the one that ends first counts."""
        now = self.clock()
        due = dues[uid] = min(dues.get(uid, now + settle), now + settle)
        return max(0.0, due - now)

    def _forget(self, uid: str) -> None:
        self._waiting.pop(uid, None)
        self._observed.pop(uid, None)

    def _own_part(self, status: KubeObject | None) -> KubeObject | None:
        """A status without the conditions of other services."""
        if not status or not self.others:
            return status
        kept = [entry for entry in status.get("conditions", ()) if entry["type"] not in self.others]
        return {**status, "conditions": kept} if "conditions" in status else status


def _state_changed(old: KubeObject, new: KubeObject) -> bool:
    """Whether readiness or the state changed to or from a value that users wait for."""
    return _comparable_status(old) != _comparable_status(new)


def _comparable_status(status: KubeObject) -> tuple[object, ...]:
    state = status.get("state")
    ready = sorted(entry["type"] for entry in status.get("conditions", ()) if entry["status"] == "True")
    return (state if state in {"successful", "failed"} else None, *ready)


def _patch(resource: Resource, obj: KubeObject, status: KubeObject) -> KubeObject:
    # The status was derived from this version. The uid is not enough: the API server ignores it here for custom
    # resources, and a successor of the same name would get its predecessor's status.
    kept = {name: obj["metadata"][name] for name in ("name", "namespace", "resourceVersion")}
    return {**resource.type_meta, "metadata": kept, "status": status}


def _common(desired: Any, stored: Any) -> Any:
    """The fields of `desired` that `stored`, which was derived from it, also has."""
    if isinstance(desired, dict):
        return {name: _common(value, stored[name]) for name, value in desired.items() if name in stored}
    if isinstance(desired, list):
        return [_common(*each) for each in zip(desired, stored, strict=True)]
    return desired
