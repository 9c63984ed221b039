"""Follows one resource of the API server without gaps and repetitions: list, then watch, until cancelled.

Events, and what the reflector does:

1. The watch ends at its timeout (5 to 10 minutes are requested): a new one continues from the last resourceVersion.
2. The connection breaks, or is silent longer than the interval of bookmarks allows: the same, after a back-off.
3. 401, 429 or 5xx: the same; the server's Retry-After counts. If the server repeatedly cannot continue from the last
   resourceVersion (500, 400, an immediate end, an answer that is not an event), the reflector lists: what causes the
   failure may precede the list.
4. 410, at the start of a watch or during it: the server has dropped that history; list again. The list yields only
   differences from what was yielded before: DELETED for objects that vanished, and both DELETED and ADDED for a name
   that another object has taken.
5. 410 during a list: the list starts over; the second time without pages, so that it cannot happen again. A list of
   many pages takes seconds. The watch begins after its first page, and changes do not wait for the other pages: if the
   watch has reported an object, the list's older version of it is skipped.
6. 404 on list: the type is not installed. The reflector waits, retries, and reports it: as a failure, or by `Absent`
   if the type is optional. A gateway, or an API server that has just started, may answer the same for an installed
   type: a type that was served counts as absent only after nothing but 404 for a while. 403: the service may not
   read the type; the reflector does the same.
7. The data store was set back (restored from a backup): resourceVersions count again from a lower number. A watch that
   continues from a number that the server has not reached yet does not report this. So the reflector reads the server's
   number between two watches, and lists again if it is lower. If the new history has already passed the old number, the
   uid and resourceVersion of all objects show it; the reflector reads them (without the objects) whenever a watch ends
   at its timeout, but less often if there are many objects, because each page costs the API server the full objects. A
   watch after an interruption is requested for a short time, so that this is detected soon, and all objects are
   compared after it, however many there are.

Backpressure: while the iterator is not advanced, nothing is read; the socket's buffer fills and the API server waits.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Set
from contextlib import aclosing
from typing import Literal

import msgspec
import structlog

from dynamo_shared.aio import Gate, Pauses, Randomness, delay, merged, spread
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.kube import errors, watch_wire
from dynamo_shared.kube.client import PAGE_SIZE, KubeClient
from dynamo_shared.kube.follow_health import FollowHealth
from dynamo_shared.kube.list_pages import ExpiredMidwayError, ListPages, query_of
from dynamo_shared.kube.reported_versions import ReportedVersions, vanished

log = structlog.get_logger("dynamo.kube")

# Bytes of a page that are handled before other tasks run, which takes a few milliseconds, and what an object counts in
# addition to its bytes.
BYTES_AT_ONCE, _OF_OBJECT = 2**18, 512
# client-go requests the same; many watches that start together end at different times.
WATCH_SECONDS = (300.0, 600.0)
# If everything is compared after each watch: all objects within five minutes.
COMPARED_SECONDS = (200.0, 280.0)
# With more than about 4,000 objects not after each watch: the API server reads at most this many objects per second on average.
COMPARED_A_SECOND = 20.0
# And soon after an interruption: while a kind was not served yet, a restored server may have passed the known number.
RESUMED_SECONDS = (10.0, 20.0)
# Only metadata, for objects of any kind.
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
# The API server sends a bookmark every minute, except for kinds without any change since it started. After half a
# minute more of silence, the connection is considered dead.
SILENCE_SECONDS = 90.0
# Back-off after failures: 0.2 s doubling to 15 s, times 0.5 to 1.5. The API server needs 3 s to restart.
_FIRST_WAIT_SECONDS = 0.2
_MAX_WAIT_SECONDS = 15.0
# Wait for a type that is not installed, or that the service may not read: a person must act first.
ABSENT_WAIT_SECONDS = (1.0, 30.0)
# A type that was served counts as removed after only 404 answers for this time. A starting API server knows all types
# within some seconds.
GONE_AFTER_SECONDS = 30.0
# Longest wait meanwhile: work that depends on the type is waiting.
_PERHAPS_GONE_WAIT_SECONDS = 5.0
# If a watch ends sooner, without any event, it has failed; this is not its timeout.
_SHORT_WATCH_SECONDS = 1.0
# Failures in a row of an available server after which a resourceVersion is given up: about ten seconds.
_STUCK_FAILURES = 5
# A watch that lasted this long ends a row of failures, even without any event.
_STABLE_SECONDS = 5.0


class ObjectChange(msgspec.Struct, frozen=True):
    """A change of one object. `obj` has no managedFields.

    If a list revealed a deletion (DELETED and `listed`), `obj` has only apiVersion, kind, and in its metadata name,
    namespace, uid and a resourceVersion at which it was already deleted.
    """

    kind: Literal["ADDED", "MODIFIED", "DELETED"]
    key: ObjectKey
    obj: KubeObject
    received_at: float
    """when the answer or chunk with it arrived, on the reflector's clock (seconds since the epoch)"""
    listed: bool = False


class Synced(msgspec.Struct, frozen=True):
    """A list is complete: all existing objects have been yielded, now or before."""

    resource_version: str
    versions: Mapping[ObjectKey, tuple[str, str]]
    """uid and resourceVersion of each object: a live view, valid until the next item is requested"""


class Absent(msgspec.Struct, frozen=True):
    """The type is not installed, which counts as an empty list; known objects have been yielded as DELETED."""


class _WatchedEvent(msgspec.Struct, frozen=True):
    """One event of a watch; ignore a bookmark's key and object."""

    type: str
    key: ObjectKey
    version: str
    obj: KubeObject
    received_at: float


class Reflector:
    """Follows one resource; `changes` may be iterated once at a time.

    `gate`: passed for each page of a list, from the request until its last change is consumed; shared by several
    reflectors.
    `optional`: the type need not be installed; `served`: it is known to have been served, so a single 404 does not
    count.
    `compare`: compare known objects with the server after each watch and each interruption (7).
    `on_health(ok, message)` is called when following starts to fail, with the cause and the remedy, and when it works
    again.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        optional: bool = False,
        served: bool = False,
        compare: bool = False,
        page_size: int = PAGE_SIZE,
        gate: Gate | None = None,
        silence: float = SILENCE_SECONDS,
        on_health: Callable[[bool, str], None] | None = None,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        randomness: Randomness | None = None,
    ) -> None:
        self._client = client
        self.resource = resource
        self._namespace = namespace
        self._selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        self._optional = optional
        self._served = served
        self._missing_seconds = 0.0
        self._compares = compare
        self._lists = ListPages(
            client,
            resource,
            namespace,
            selectors=self._selectors,
            page_size=page_size,
            gate=gate,
            clock=clock,
        )
        self._silence = silence
        self._health = FollowHealth(resource, on_health)
        self._clock = clock
        self._sleep = sleep
        self._randomness = randomness
        self._known = ReportedVersions()
        self._version = ""
        self._interrupted = False
        self._compared = 0.0
        """time of the last full comparison or list, on the loop's clock"""
        self._listing = False
        """whether pages of a list are missing: until they arrive, a parallel watch does not prove that everything works"""
        self._failures = 0
        self.last_contact = 0.0
        """time of the API server's last message (bookmarks count), on `clock`; 0 before the first"""

    async def changes(self) -> AsyncGenerator[ObjectChange | Synced | Absent, None]:
        """All changes, without end. Never raises KubeError. Close it (`aclosing`): a watch holds a connection."""
        while True:
            resumed = bool(self._version) and self._interrupted and self._compares
            try:
                if resumed:
                    await self._check_number()
                self._interrupted = True
                following = self._watch(resumed) if self._version else self._list_and_watch()
                async with aclosing(following) as items:
                    async for item in items:
                        yield item
                # A server that shuts down ends its watches normally: only a server that answers again, with a higher
                # number, counts as the same.
                if self._compares:
                    await (self._compare() if resumed or self._is_due() else self._check_number())
                self._interrupted = False
            except ExpiredMidwayError:
                log.info("list expired, starting over", resource=self.resource.id)
            except errors.Expired as error:
                log.info("listing again", resource=self.resource.id, cause=error.message)
                self._version = ""
                if self._failures:
                    await self._wait(error)
                self._failures += 1
            except errors.KubeError as error:
                stuck = self._failures >= _STUCK_FAILURES and _is_of_version(error)
                if stuck or _is_too_large(error) or isinstance(error, errors.NotServed):
                    self._version = ""
                if self._is_removed(error):
                    async with aclosing(self._absent()) as items:
                        async for left in items:
                            yield left
                await self._wait(error)
                self._failures += 1

    async def _list_and_watch(self) -> AsyncGenerator[ObjectChange | Synced, None]:
        """Everything, compared with the known objects, then changes, including those before the last page arrived."""
        # In the first list no known object can be missing.
        listed_keys: set[ObjectKey] | None = set() if self._known else None
        overtaken: set[ObjectKey] = set()
        begun = asyncio.Event()
        self._listing = True
        try:
            async with aclosing(merged(self._pages(begun), self._events_from(begun))) as items:
                async for item in items:
                    if isinstance(item, _WatchedEvent):
                        if self._listing:
                            overtaken.add(item.key)
                        for change in self._taken(item):
                            yield change
                        continue
                    received_at, version = self.last_contact, item.metadata.resource_version
                    is_last = not item.metadata.continue_
                    pauses, each = Pauses(BYTES_AT_ONCE), msgspec.Raw()
                    for each in item.items or ():
                        for change in self._listed(each, listed_keys, overtaken):
                            yield change
                        if pauses.due(_OF_OBJECT + len(each)):
                            await asyncio.sleep(0)
                    # Release megabytes before the next item; each part of a page holds all of it.
                    del item, each
                    if not is_last:
                        continue
                    # Events that arrive meanwhile wait: nothing else changes the known objects.
                    left = await self._known.others(listed_keys | overtaken) if listed_keys is not None else ()
                    for key, uid in left:
                        yield self._gone(key, uid, version, received_at)
                    listed_keys, overtaken = None, set()
                    self._listing = False
                    self._version = self._version or version
                    self._compared = asyncio.get_running_loop().time()
                    self._lists.complete()
                    self._served, self._missing_seconds = True, 0.0
                    self._health.works()
                    yield Synced(version, self._known)
        finally:
            if self._listing:
                self._listing, self._version = False, ""

    async def _pages(self, begun: asyncio.Event) -> AsyncGenerator[watch_wire.ListPage, None]:
        """All pages of a list. `begun` is set once the first page was consumed: then a watch may begin."""
        async with aclosing(self._lists.all()) as pages:
            async for page in pages:
                self.last_contact = self._clock()
                version = page.metadata.resource_version
                yield page
                # Release megabytes before the next page.
                del page
                if not begun.is_set():
                    self._version = version
                    begun.set()

    def _listed(
        self, item: msgspec.Raw, listed_keys: set[ObjectKey] | None, overtaken: Set[ObjectKey]
    ) -> Iterator[ObjectChange]:
        """Changes in an item of a page that are not known yet; its key is added to `listed_keys`.

        For keys in `overtaken` a watch has already reported a later version.
        """
        meta = watch_wire.item_meta(item)
        key = ObjectKey(meta.namespace, meta.name)
        if listed_keys is not None:
            listed_keys.add(key)
        if key not in overtaken and self._known.get(key) != (meta.uid, meta.resource_version):
            yield from self._changed(key, self._item(item), self.last_contact, listed=True)

    async def _check_number(self) -> None:
        """Expired if the server's resourceVersion is lower than the known one."""
        self._refuse_older(await self._lists.read(limit=1))

    def _refuse_older(self, page: watch_wire.ListPage) -> None:
        number = page.metadata.resource_version
        if _is_older(number, self._version):
            raise errors.Expired(
                410, "Expired", f"resourceVersion of the data store went back from {self._version} to {number}"
            )

    async def _compare(self) -> None:
        """Expired like `_check_number`, and if an object has an older version or another uid than the known one."""
        token = ""
        met: set[ObjectKey] = set()
        while True:
            page = await self._lists.read(token, accept=METADATA_ONLY)
            self._refuse_older(page)
            for item in page.items or ():
                meta = watch_wire.item_meta(item)
                key = ObjectKey(meta.namespace, meta.name)
                met.add(key)
                news = not meta.resource_version.isdigit() or _is_older(self._version, meta.resource_version)
                if not news and self._known.get(key) != (meta.uid, meta.resource_version):
                    raise errors.Expired(
                        410, "Expired", f"{key} has resourceVersion {meta.resource_version}, which was not reported"
                    )
            token = page.metadata.continue_
            if not token:
                break
        if await self._known.others(met):
            # They were deleted just now, or in a history that was never reported: a list shows which.
            raise errors.Expired(410, "Expired", "known objects no longer exist")
        self._compared = asyncio.get_running_loop().time()

    def _is_due(self) -> bool:
        """Whether everything may be compared again within the limit of `COMPARED_A_SECOND`."""
        return asyncio.get_running_loop().time() - self._compared >= len(self._known) / COMPARED_A_SECOND

    def _is_removed(self, error: errors.KubeError) -> bool:
        """Whether a failure proves that an optional type is missing or was removed."""
        if not isinstance(error, errors.NotServed):
            self._missing_seconds = 0.0
            return False
        return self._optional and (not self._served or self._missing_seconds >= GONE_AFTER_SECONDS)

    async def _absent(self) -> AsyncGenerator[ObjectChange | Absent, None]:
        """Report all known objects of a missing type as deleted."""
        received_at = self.last_contact = self._clock()
        for key, uid in await self._known.others(()):
            yield self._gone(key, uid, self._known[key][1], received_at)
        self._served = False
        self._health.works()
        yield Absent()

    def _item(self, item: msgspec.Raw) -> KubeObject:
        """An item of a list with the apiVersion and kind that built-in lists omit."""
        obj = watch_wire.decode_object(item)
        obj["apiVersion"], obj["kind"] = self.resource.api_version, self.resource.kind
        return obj

    async def _watch(self, resumed: bool) -> AsyncGenerator[ObjectChange, None]:
        """Changes after the known resourceVersion, until the watch ends."""
        async with aclosing(self._events(resumed)) as events:
            async for event in events:
                for change in self._taken(event):
                    yield change

    async def _events_from(self, begun: asyncio.Event) -> AsyncGenerator[_WatchedEvent, None]:
        """Events of a watch that first waits for the resourceVersion from which it starts."""
        await begun.wait()
        async with aclosing(self._events(False)) as events:
            async for event in events:
                yield event

    async def _events(self, resumed: bool) -> AsyncGenerator[_WatchedEvent, None]:
        shortest, longest = RESUMED_SECONDS if resumed else COMPARED_SECONDS if self._compares else WATCH_SECONDS
        seconds = int(spread(longest, least=shortest / longest, randomness=self._randomness))
        version = self._version
        query = query_of(
            {
                **self._selectors,
                "watch": "true",
                "allowWatchBookmarks": "true",
                "resourceVersion": version,
                "timeoutSeconds": str(seconds),
            }
        )
        loop = asyncio.get_running_loop()
        started, spoken = loop.time(), False
        lines = watch_wire.Lines()
        async with self._client.stream(self.resource, self._namespace, query, silence=self._silence) as stream:
            self.last_contact = self._clock()
            if not self._listing:
                self._health.works()
            try:
                while chunk := await stream.readany():
                    received_at = self.last_contact = self._clock()
                    for line in lines.feed(chunk):
                        event = _event(line, received_at)
                        spoken = True
                        if _is_older(event.version, version):
                            # Only a data store that was set back (restored, or another cluster at this address) counts backwards.
                            message = f"resourceVersion {event.version} came after {version}"
                            raise errors.Expired(410, "Expired", message)
                        version = event.version
                        yield event
            finally:
                if loop.time() - started > _STABLE_SECONDS and not self._listing:
                    self._failures = 0
        if not spoken and loop.time() - started < _SHORT_WATCH_SECONDS:
            raise errors.Unavailable(0, "ShortWatch", "the server ended the watch immediately")

    def _taken(self, event: _WatchedEvent) -> Iterator[ObjectChange]:
        """The changes of an event.

        The known state is updated before a consumer gets a change: a consumer that is cancelled with a change has
        received it, and a new iteration does not repeat it.
        """
        self._version = event.version
        if not self._listing:
            self._failures = 0
        if event.type == watch_wire.BOOKMARK:
            return
        if event.type != "DELETED":
            yield from self._changed(event.key, event.obj, event.received_at)
        elif self._known.forget(event.key) or self._listing:
            # Until the list is complete, the consumer may know objects that were not listed yet, from STATE.
            event.obj["metadata"].pop("managedFields", None)
            yield ObjectChange("DELETED", event.key, event.obj, event.received_at)

    def _changed(
        self, key: ObjectKey, obj: KubeObject, received_at: float, *, listed: bool = False
    ) -> Iterator[ObjectChange]:
        metadata = obj["metadata"]
        metadata.pop("managedFields", None)
        uid, version = metadata.get("uid", ""), metadata["resourceVersion"]
        before = self._known.get(key)
        if before == (uid, version):
            return
        kind: Literal["ADDED", "MODIFIED"] = "ADDED" if before is None else "MODIFIED"
        if before is not None and before[0] != uid:
            # Deleted and created again between two reads. The old one was deleted just before the new one's version.
            gone_at = str(int(version) - 1) if version.isdigit() else before[1]
            yield self._gone(key, before[0], gone_at, received_at)
            kind = "ADDED"
        self._known.remember(key, uid, version)
        yield ObjectChange(kind, key, obj, received_at, listed)

    def _gone(self, key: ObjectKey, uid: str, version: str, received_at: float) -> ObjectChange:
        """The deletion of an object that no watch reported."""
        self._known.forget(key)
        return ObjectChange("DELETED", key, vanished(self.resource, key, uid, version), received_at, listed=True)

    async def _wait(self, error: errors.KubeError) -> None:
        first, longest = _FIRST_WAIT_SECONDS, _MAX_WAIT_SECONDS
        if isinstance(error, errors.NotServed | errors.Forbidden):
            first, longest = ABSENT_WAIT_SECONDS
            if self._optional and self._served:
                longest = _PERHAPS_GONE_WAIT_SECONDS
        seconds = delay(self._failures + 1, first, longest, self._randomness, most=1.5) + (error.retry_after or 0.0)
        if not (self._optional and isinstance(error, errors.NotServed)):
            if error.retriable and not self._failures and self._version:
                # It is reported if resuming fails, too.
                self._health.interrupted(error, self._version)
            else:
                self._health.failed(error)
        await self._sleep(seconds)
        if isinstance(error, errors.NotServed):
            self._missing_seconds += seconds


def _event(line: bytes, received_at: float) -> _WatchedEvent:
    event = watch_wire.decode_event(line)
    obj = event.object
    if event.type == watch_wire.ERROR:
        code = obj.get("code")
        raise errors.from_status(code if isinstance(code, int) else 500, obj, request="watch")
    meta = watch_wire.event_meta(event)
    return _WatchedEvent(event.type, ObjectKey(meta.namespace, meta.name), meta.resource_version, obj, received_at)


def _is_older(version: str, than: str) -> bool:
    return version.isdigit() and than.isdigit() and int(version) < int(than)


def _is_of_version(error: errors.KubeError) -> bool:
    """Whether the server is available but cannot continue, perhaps only from this resourceVersion."""
    return isinstance(error, errors.Invalid) or error.status == 500 or error.reason in ("Garbled", "ShortWatch")


def _is_too_large(error: errors.KubeError) -> bool:
    """Whether the server does not know the known resourceVersion yet: it lags, or its data was set back."""
    return any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes)
