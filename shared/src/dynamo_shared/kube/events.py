"""Records Events on objects, for `kubectl describe`. A recording only adds an entry to a queue.

Each Event costs one API write and no read: the recorder chooses the name and creates the Event at the first occurrence.
Later occurrences patch its series, or create it again if it has expired. A series is complete within two minutes of its
last occurrence. After a few failed attempts an Event is dropped with a log line, because Events are not state.
Namespaces take turns. One whose webhook hangs occupies one of the writers, and one whose webhook fails waits alone. If
too many Events wait, one of the namespace with most waiting Events is dropped.
"""

import asyncio
import socket
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Self

import structlog

from dynamo_shared.aio import Turns, delay, ended, endless
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import EVENTS, ObjectKey
from dynamo_shared.api.untrusted.words import redacted
from dynamo_shared.kube import errors
from dynamo_shared.kube.client import KubeClient
from dynamo_shared.kube.event_series import (
    SERIES_WRITE_SECONDS,
    EventCorrelator,
    EventOutcome,
    EventType,
    Series,
    SeriesKey,
    clipped,
)

log = structlog.get_logger("dynamo.kube")

# A thousand waiting Events take a minute to write.
CAPACITY = 1000
# Time of a stopping service to write the waiting Events. Seconds.
FLUSH_SECONDS = 5.0

# Each writes for another namespace. A webhook may take 10 seconds by default, and its Events are then retried later.
_WRITERS = 8
_ATTEMPTS = 4
_FIRST_WAIT_SECONDS, _MAX_WAIT_SECONDS = 1.0, 10.0
# Limits of events.k8s.io/v1 validation.
_MAX_WORD = 128
# The warnings about one object have some 50 KB; anyone may write thousands of large ones.
_MAX_WARNINGS_BYTES = 256 << 10


class EventRecorder:
    """Writes the Events of one service. `record` works before, during and after a run; only a running recorder writes.

    Run it with `async with recorder:`. At the end it writes the waiting Events within `FLUSH_SECONDS`.
    """

    def __init__(
        self,
        client: KubeClient,
        reporting_component: str,
        clock: Callable[[], float] = time.time,
        *,
        instance: str = "",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        new_suffix: Callable[[], str] = lambda: uuid.uuid4().hex[:16],
        count: Callable[[EventOutcome], None] = lambda _: None,
    ) -> None:
        """`count` receives the outcome of each occurrence, and `written` when a series is completed."""
        self._client = client
        self._component = reporting_component
        self._instance = (instance or f"{reporting_component}-{socket.gethostname()}")[:_MAX_WORD]
        self._sleep = sleep
        self._correlator = EventCorrelator(clock, new_suffix)
        self._clock = clock
        self._waiting = Turns[Series](lambda series: series.namespace)
        self._available = asyncio.Event()
        #: One entry for each series that waits or is written.
        self._queue: asyncio.Queue[None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._count = count

    def record(self, involved: KubeObject, *, type_: EventType, reason: str, message: str, action: str) -> None:
        """Record an Event about `involved` (an object as read from the API server). Never blocks, never raises.

        `reason`: CamelCase, for machines. `action`: the action that was in progress. `message`: for people.
        """
        try:
            metadata = involved["metadata"]
            identity = SeriesKey(
                metadata.get("uid", ""),
                type_,
                reason[:_MAX_WORD],
                action[:_MAX_WORD] or "Reconcile",
                clipped(redacted(message)),
                metadata.get("namespace") or "",
            )
            series = self._correlator.admit(involved, identity)
        except Exception:
            log.exception("cannot record Event", reason=reason)
            self._count("dropped")
            return
        if not isinstance(series, Series):
            self._count(series)
            return
        self._enqueue(series)

    def _enqueue(self, series: Series) -> None:
        self._waiting.add(series)
        self._queue.put_nowait(None)
        self._available.set()
        series.queued = True
        if len(self._waiting) > CAPACITY:
            last = self._waiting.last_of_longest()
            self._waiting.discard(last)
            self._count("dropped")
            self._settled(last)

    def _settled(self, series: Series) -> None:
        """A series no longer waits, written or not."""
        series.queued, series.attempts = False, 0
        if series.written_at is None:
            self._correlator.forget(series)
        self._queue.get_nowait()
        self._queue.task_done()

    async def __aenter__(self) -> Self:
        if self._task is not None:
            raise RuntimeError("the recorder is already running")
        self._task = asyncio.create_task(self._work(), name=f"events of {self._component}")
        return self

    async def __aexit__(self, *_: object) -> None:
        task, self._task = self._task, None
        if task is None:
            return
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._queue.join()
        except TimeoutError:
            log.warning("stopped with Events not written", count=self._queue.qsize())
        finally:
            await ended(task)

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_WRITERS):
                tasks.create_task(endless(self._write_all(tasks)))
            while True:
                await asyncio.sleep(SERIES_WRITE_SECONDS)
                for series in self._correlator.behind():
                    self._enqueue(series)

    async def _write_all(self, pauses: asyncio.TaskGroup) -> None:
        while True:
            while not self._waiting.available:
                self._available.clear()
                await self._available.wait()
            series, _ = self._waiting.pop()
            self._waiting.park(series.namespace, True)
            pause = 0.0
            try:
                pause = await self._write(series)
            except Exception:
                log.exception("cannot write Event", reason=series.identity.reason)
                self._count("dropped")
            finally:
                if not pause:
                    self._settled(series)
                    self._unpark(series.namespace)
            if pause:
                self._waiting.add(series)
                pauses.create_task(self._unpark_after(pause, series.namespace))

    async def _unpark_after(self, pause: float, namespace: str) -> None:
        await self._sleep(pause)
        self._unpark(namespace)

    def _unpark(self, namespace: str) -> None:
        self._waiting.park(namespace, False)
        self._available.set()

    async def _write(self, series: Series) -> float:
        """Write a series, or drop it: returns 0. If a webhook fails: after how many seconds it must be tried again."""
        while True:
            series.attempts += 1
            series.written = series.count
            try:
                await self._write_once(series)
            except errors.AlreadyExists:
                # The recorder chose this name: an earlier attempt arrived, but its answer did not. It reported at least
                # one occurrence.
                series.written = 1
            except errors.KubeError as error:
                if error.retriable and series.attempts < _ATTEMPTS:
                    wait = delay(series.attempts, _FIRST_WAIT_SECONDS, _MAX_WAIT_SECONDS, most=1.5)
                    wait += error.retry_after or 0.0
                    if isinstance(error, errors.WebhookUnavailable):
                        return wait
                    await self._sleep(wait)
                    continue
                self._count("dropped")
                # A namespace that is being deleted refuses Events, which is expected.
                say = log.debug if isinstance(error, errors.NotFound | errors.NamespaceTerminating) else log.warning
                reason, name = series.identity.reason, series.regarding["name"]
                say("cannot write Event", reason=reason, about=name, error=str(error))
                return 0.0
            series.written_at = self._clock()
            self._count("written")
            return 0.0

    async def _write_once(self, series: Series) -> None:
        if series.written_at is not None:
            patch = {"series": _series(series)}
            # If the Event has expired or was deleted, it is created again with the complete count.
            with suppress(errors.NotFound):
                await self._client.merge_patch(EVENTS, ObjectKey(series.namespace, series.name), patch)
                return
        await self._client.create(EVENTS, self._event(series))

    def _event(self, series: Series) -> KubeObject:
        identity = series.identity
        event: dict[str, Any] = {
            **EVENTS.type_meta,
            "metadata": {"name": series.name, "namespace": series.namespace},
            "eventTime": _micro_time(series.first_at),
            "reportingController": self._component,
            "reportingInstance": self._instance,
            "type": identity.type_,
            "reason": identity.reason,
            "action": identity.action,
            "note": identity.message,
            "regarding": series.regarding,
        }
        if series.count > 1:
            event["series"] = _series(series)
        return event


async def warnings_about(kube: KubeClient, namespace: str, selector: str) -> list[KubeObject]:
    """The Warning Events of a namespace that a field selector selects. Raises ResponseTooLarge above 256 KiB."""
    selector = f"{selector},type=Warning"
    return await kube.list(EVENTS, namespace, field_selector=selector, most=_MAX_WARNINGS_BYTES)


def last_observed(event: KubeObject) -> str:
    """The last observation of an Event (events.k8s.io); "" if it has none. Some controllers write the fields of core/v1."""
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("deprecatedLastTimestamp") or event.get("eventTime") or "")


def newest_refusal(events: Iterable[KubeObject]) -> KubeObject | None:
    """The most recently observed Event in which a controller reports that its pod was refused."""
    return max((each for each in events if each.get("reason") == "FailedCreate"), key=last_observed, default=None)


def _series(series: Series) -> dict[str, Any]:
    return {"count": series.count, "lastObservedTime": _micro_time(series.last_at)}


def _micro_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
