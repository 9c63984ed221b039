"""Which Events are worth a write: identical ones are one series, and a reason of an object has a few a minute. Pure."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.newest import Newest

EventType = Literal["Normal", "Warning"]
EventOutcome = Literal["written", "counted", "dropped", "suppressed"]
"""What became of an occurrence: an Event says it, it is one more in a series, it could not be written, or it was one too many
of its object and reason."""

# Per object, type and reason, so that news which repeats cannot use up what other news needs (a readiness that comes
# and goes, and then a deletion): four at once, then three a minute.
BURST = 4
REFILL_SECONDS = 20.0
# The same again within this time is the same series (client-go: 6 minutes; the server keeps Events for an hour).
SERIES_SECONDS = 600.0
# A series is written again at most this often.
SERIES_WRITE_SECONDS = 60.0
# Memory for as many objects and series; the ones not heard of for longest go first.
REMEMBERED = 4096

# Limits of events.k8s.io/v1 validation, in bytes.
MAX_NOTE = 1024
MAX_NAME = 253


class SeriesKey(NamedTuple):
    """What makes two occurrences the same."""

    uid: str
    type_: EventType
    reason: str
    action: str
    message: str


class Series:
    """Occurrences of the same thing, and the Event object that reports them."""

    __slots__ = (
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
        # Events of cluster-scoped objects live in `default`, where kubectl describe looks for them.
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
        # The count that was last written, or given up, and when one was written.
        self.written = 0
        self.written_at: float | None = None
        self.queued = False


class EventCorrelator:
    """Decides what is written. Not safe for threads."""

    def __init__(self, clock: Callable[[], float], new_suffix: Callable[[], str]) -> None:
        self._clock = clock
        self._new_suffix = new_suffix
        self._series: Newest[SeriesKey, Series] = Newest(REMEMBERED)
        self._buckets: Newest[tuple[str, EventType, str], tuple[float, float]] = Newest(REMEMBERED)

    def admit(self, involved: KubeObject, identity: SeriesKey) -> Series | EventOutcome:
        """The series to be written now, or what becomes of the occurrence where nothing is written."""
        now = self._clock()
        series = self._series.used(identity)
        # Differences count either way: a clock that was set back must not silence a series until it has caught up.
        if series is not None and abs(now - series.last_at) <= SERIES_SECONDS:
            series.count += 1
            series.last_at = now
            return series if self._due(series, now) else "counted"
        if not self._take(identity, now):
            return "suppressed"
        series = Series(identity, involved, self._new_suffix(), now)
        self._series[identity] = series
        return series

    def behind(self) -> list[Series]:
        """Series to be written now because they came again within a minute of their last write, and not since."""
        now = self._clock()
        return [each for each in self._series.values() if each.count > each.written and self._due(each, now)]

    def forget(self, series: Series) -> None:
        """The series was not written: its next occurrence starts a new one."""
        self._series.pop(series.identity, None)

    def _due(self, series: Series, now: float) -> bool:
        """Whether the Event of a series is written again now; it has its token then."""
        return (
            series.written_at is not None
            and not series.queued
            and abs(now - series.written_at) >= SERIES_WRITE_SECONDS
            and self._take(series.identity, now)
        )

    def _take(self, identity: SeriesKey, now: float) -> bool:
        """One token of the bucket of an object's reason."""
        bucket = (identity.uid, identity.type_, identity.reason)
        tokens, at = self._buckets.get(bucket) or (float(BURST), now)
        tokens = min(float(BURST), tokens + max(0.0, now - at) / REFILL_SECONDS)
        enough = tokens >= 1.0
        self._buckets[bucket] = (tokens - 1.0 if enough else tokens, now)
        return enough


def clipped(text: str) -> str:
    """Text that fits into MAX_NOTE bytes of UTF-8, its end replaced by an ellipsis where it does not."""
    encoded = text.encode()
    if len(encoded) <= MAX_NOTE:
        return text
    return encoded[: MAX_NOTE - 3].decode(errors="ignore") + "…"
