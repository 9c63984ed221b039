"""Decides which Events to write: identical ones form a series, and the rate of an object's reason is limited. Pure."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.lru import LaneLruCache

EventType = Literal["Normal", "Warning"]
EventOutcome = Literal["written", "counted", "dropped", "suppressed"]
"""The outcome of an occurrence: written as an Event, counted in a series, dropped because the write failed, or
suppressed by the rate limit of its object and reason.
"""

# Rate limit of an object, type and reason: four at once, then three a minute. A repeating Event (a readiness that
# flaps) cannot use the limit of others (a deletion).
BURST = 4
REFILL_SECONDS = 20.0
# A repetition within this time belongs to the same series (client-go: 6 minutes; the server keeps Events for an hour).
SERIES_SECONDS = 600.0
# Shortest interval between writes of a series.
SERIES_WRITE_SECONDS = 60.0
# Largest number of remembered objects and of series; the least recent ones of the namespace with the most are evicted.
REMEMBERED = 4096

# Limits of events.k8s.io/v1 validation, in bytes.
MAX_NOTE = 1024
MAX_NAME = 253


class SeriesKey(NamedTuple):
    """The identity of an occurrence: equal keys belong to the same series."""

    uid: str
    type_: EventType
    reason: str
    action: str
    message: str
    namespace: str = ""


class Series:
    """Equal occurrences, and the Event object that reports them."""

    __slots__ = (
        "attempts",
        "count",
        "first_at",
        "identity",
        "last_at",
        "name",
        "namespace",
        "queued",
        "regarding",
        "written",
        "written_at",
    )

    def __init__(self, identity: SeriesKey, involved: KubeObject, suffix: str, now: float) -> None:
        metadata = involved["metadata"]
        self.identity = identity
        # Events of cluster-scoped objects are in the namespace `default`, where kubectl describe searches for them.
        self.namespace: str = metadata.get("namespace") or "default"
        self.name = f"{metadata['name'][: MAX_NAME - len(suffix) - 1].rstrip('-.')}.{suffix}"
        self.regarding: dict[str, Any] = {
            "apiVersion": involved["apiVersion"],
            "kind": involved["kind"],
            "name": metadata["name"],
            "namespace": metadata.get("namespace", ""),
            "uid": metadata.get("uid", ""),
            "resourceVersion": metadata.get("resourceVersion", ""),
        }
        self.first_at = self.last_at = now
        self.count = 1
        # The count at the last write or failed write, and the time of the last successful write.
        self.written = 0
        self.written_at: float | None = None
        self.queued = False
        # Attempts at the write that waits or is under way.
        self.attempts = 0


class EventCorrelator:
    """Decides which occurrences are written. Not thread-safe."""

    def __init__(self, clock: Callable[[], float], new_suffix: Callable[[], str]) -> None:
        self._clock = clock
        self._new_suffix = new_suffix
        self._series: LaneLruCache[SeriesKey, Series] = LaneLruCache(REMEMBERED)
        self._buckets: LaneLruCache[tuple[str, EventType, str], tuple[float, float]] = LaneLruCache(REMEMBERED)

    def admit(self, involved: KubeObject, identity: SeriesKey) -> Series | EventOutcome:
        """The series to write now, or the outcome of the occurrence if nothing is written."""
        now = self._clock()
        series = self._series.touch(identity.namespace, identity)
        # Compare absolute differences: after a clock was set back, a series must not be silent until the clock catches up.
        if series is not None and abs(now - series.last_at) <= SERIES_SECONDS:
            series.count += 1
            series.last_at = now
            return series if self._due(series, now) else "counted"
        if not self._take(identity, now):
            return "suppressed"
        series = Series(identity, involved, self._new_suffix(), now)
        self._series.put(identity.namespace, identity, series)
        return series

    def behind(self) -> list[Series]:
        """Series to write now: they repeated within a minute of their last write, and not since."""
        now = self._clock()
        return [each for each in self._series.values() if each.count > each.written and self._due(each, now)]

    def forget(self, series: Series) -> None:
        """Forget a series that was not written: its next occurrence starts a new one."""
        self._series.pop(series.identity.namespace, series.identity)

    def _due(self, series: Series, now: float) -> bool:
        """Whether the Event of a series should be written again now. If so, takes a token."""
        return (
            series.written_at is not None
            and not series.queued
            and abs(now - series.written_at) >= SERIES_WRITE_SECONDS
            and self._take(series.identity, now)
        )

    def _take(self, identity: SeriesKey, now: float) -> bool:
        """Take one token from the bucket of an object's reason."""
        bucket = (identity.uid, identity.type_, identity.reason)
        tokens, at = self._buckets.get(identity.namespace, bucket) or (float(BURST), now)
        tokens = min(float(BURST), tokens + max(0.0, now - at) / REFILL_SECONDS)
        enough = tokens >= 1.0
        self._buckets.put(identity.namespace, bucket, (tokens - 1.0 if enough else tokens, now))
        return enough


def clipped(text: str) -> str:
    """The text, shortened with an ellipsis to MAX_NOTE bytes of UTF-8 if necessary."""
    encoded = text.encode()
    if len(encoded) <= MAX_NOTE:
        return text
    return encoded[: MAX_NOTE - 3].decode(errors="ignore") + "…"
