"""Lists and streams of collections, from STATE, after the API server has confirmed the caller's rights."""

import base64
import binascii
from collections.abc import Collection, Iterable, Mapping
from itertools import accumulate, chain
from typing import TypeVar

import msgspec
from aiohttp import web
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.lru import LruCache

from dynamo_dynadmin.api.kinds import Kind
from dynamo_dynadmin.api.selectors import InvalidSelector, Selector, selector
from dynamo_dynadmin.deploy.problems import FieldProblem
from dynamo_dynadmin.http.call import Call, joined
from dynamo_dynadmin.http.problems import ProblemError
from dynamo_dynadmin.http.streaming import Stream, Streams, frame
from dynamo_dynadmin.identity.access import Access, ResourceAttributes
from dynamo_dynadmin.state.entries import StoredObject
from dynamo_dynadmin.state.hub import Hub, Resync, changes
from dynamo_dynadmin.state.position import Position

K = TypeVar("K")
DEFAULT_LIMIT, MOST = 500, 5000
#: Bytes of objects after which a page ends, and of events that a stream writes at a time: thousands of objects may have
#: a megabyte each.
PAGE_BYTES, WRITTEN_BYTES = 8 << 20, 1 << 20
#: Objects whose end a stream remembers; for an object that it forgot, a reader may get another DELETED.
_GONE = 10_000
_RESYNC = "the changes since then are no longer available; list again, or stream without Last-Event-ID"


class CollectionReader:
    """Reads collections for callers."""

    def __init__(self, hub: Hub, access: Access, streams: Streams) -> None:
        self._hub = hub
        self._access = access
        self._streams = streams

    async def require(self, call: Call, act: ResourceAttributes) -> None:
        """ProblemError if the caller does not have the right."""
        verdict = await self._access.may(call.caller, act)
        if not verdict.allowed:
            reason = f" ({verdict.reason})" if verdict.reason else ""
            raise ProblemError("forbidden", f"{call.caller.identity.user} may not {act}{reason}")

    async def may(self, call: Call, act: ResourceAttributes) -> bool:
        """Whether the caller has the right."""
        return (await self._access.may(call.caller, act)).allowed

    async def allowed(self, call: Call, acts: Mapping[K, ResourceAttributes]) -> dict[K, bool]:
        """Which of some actions, in the call's namespace or cluster-wide, the caller may perform."""
        return await self._access.allowed(call.caller, call.kube, call.namespace, acts)

    async def where(self, call: Call, act: ResourceAttributes, namespaces: Collection[str]) -> list[str]:
        """The namespaces in which the caller may perform `act`, without its namespace."""
        return await self._access.where(call.caller, act, namespaces)

    def known(self, resource: Resource) -> None:
        """ProblemError until the resource has been read."""
        if not self._hub.entries(resource).synced:
            detail = (
                f"{resource.id} are not available yet: NATS or the watcher is down, or this replica has just started"
            )
            raise ProblemError("unavailable", detail, retry_after=2)

    async def list_of(self, call: Call, kind: Kind) -> web.StreamResponse:
        """A page of a collection, or with `watch`, a stream of it."""
        if call.flag("watch"):
            return await self.stream_of(call, kind)
        namespace = call.namespace
        matches = _selector(call)
        limit = call.number("limit", DEFAULT_LIMIT)
        # Changes between two pages are newer than the first page.
        position, after = _after(call.text("continue")) or (self._hub.position(), "")
        await self.require(call, ResourceAttributes("list", kind.resource, namespace))
        self.known(kind.resource)
        matching = [
            each
            for each in self._hub.entries(kind.resource).of_namespace(namespace)
            if each.key.name > after and matches(each.labels)
        ]
        page = _of_size(matching[:limit])
        rest = len(matching) - len(page)
        metadata: dict[str, object] = {"position": str(position)}
        if rest > 0 and page:
            metadata |= {"continue": _token(position, page[-1].key.name), "remainingItemCount": rest}
        head = msgspec.json.encode(
            {
                "apiVersion": kind.resource.api_version,
                "kind": f"{kind.resource.kind}List",
                "metadata": metadata,
            }
        )
        return call.answer(head[:-1] + b',"items":' + joined([each.payload for each in page]) + b"}")

    async def stream_of(self, call: Call, kind: Kind, name: str = "") -> web.StreamResponse:
        """Changes of a collection, or of one object: existing objects first, then changes."""
        namespace = call.namespace
        matches = _selector(call)
        act = ResourceAttributes("watch", kind.resource, namespace, name)
        await self.require(call, act)
        self.known(kind.resource)
        last = call.request.headers.get("Last-Event-ID", "")
        position = Position.of(last) if last else None
        async with self._streams.opened(call, [act]) as stream:
            follower = _Follower(self._hub, kind.resource, ObjectKey(namespace, name), matches, resumed=bool(last))
            try:
                if last and position is None:
                    raise Resync
                await follower.follow(stream, position)
            except Resync:
                await stream.send("resync", {"detail": _RESYNC})
        return stream.response


class _Follower:
    """A stream of a namespace, or of one object in it."""

    def __init__(
        self, hub: Hub, resource: Resource, key: ObjectKey, matches: Selector, *, resumed: bool = False
    ) -> None:
        self._hub = hub
        self._resource = resource
        self._key = key
        self._matches = matches
        self._shown: set[str] = set()
        self._resumed = resumed
        self._gone: LruCache[str, None] = LruCache(_GONE)
        """objects that a resumed reader no longer has; it may have any version of the others"""

    async def follow(self, stream: Stream, position: Position | None) -> None:
        """Follow until the stream ends. Resync, StreamEnded."""
        namespace = self._key.namespace
        with self._hub.reading(self._resource, namespace) as reader:
            # Up to the first await, nothing changes: the following code reads one consistent state.
            here = self._hub.position()
            if position is None:
                # Without ids: a stream that breaks off here starts from the beginning.
                first = self._hub.entries(self._resource).of_namespace(namespace)
                frames = (self._frame(each, "") for each in first if self._is_meant(each))
            else:
                missed = self._hub.resume(self._resource, namespace, position)
                frames = (self._frame(each, _id(each, here.incarnation)) for each in missed if self._concerns(each))
            await _write(stream, chain(frames, [frame("synced", {"position": str(here)}, str(here))]))
            async for batch in changes(reader, stream.timeout):
                await stream.keep()
                await _write(
                    stream, (self._frame(each, _id(each, each.incarnation)) for each in batch if self._concerns(each))
                )

    def _concerns(self, entry: StoredObject) -> bool:
        return not self._key.name or entry.key.name == self._key.name

    def _is_meant(self, entry: StoredObject) -> bool:
        return self._concerns(entry) and self._matches(entry.labels)

    def _frame(self, entry: StoredObject, identity: str) -> bytes:
        """The event for a reader of the selector: an object that no longer matches counts as deleted."""
        name = entry.key.name
        if entry.deleted or not self._matches(entry.labels):
            known = name in self._shown or (self._resumed and name not in self._gone)
            self._shown.discard(name)
            if self._resumed:
                self._gone[name] = None
            return frame("DELETED", entry.frame(), identity) if known else b""
        change = "MODIFIED" if name in self._shown else "ADDED"
        self._shown.add(name)
        self._gone.pop(name, None)
        return frame(change, entry.frame(), identity)


def _of_size(entries: list[StoredObject]) -> list[StoredObject]:
    """As many of the first entries as a page may have, at least one."""
    sizes = accumulate(len(each.payload) for each in entries)
    return [each for each, size in zip(entries, sizes, strict=True) if size - len(each.payload) < PAGE_BYTES]


async def _write(stream: Stream, frames: Iterable[bytes]) -> None:
    """Write frames as they are made, many small ones at a time."""
    content = bytearray()
    for each in frames:
        content += each
        if len(content) >= WRITTEN_BYTES:
            await stream.write(bytes(content))
            content.clear()
    if content:
        await stream.write(bytes(content))


def _id(entry: StoredObject, incarnation: str) -> str:
    return str(Position(entry.sequence, incarnation))


def _selector(call: Call) -> Selector:
    try:
        return selector(call.text("labelSelector"))
    except InvalidSelector as error:
        raise ProblemError("bad-request", str(error), errors=[FieldProblem("?labelSelector", str(error))]) from None


def _token(position: Position, name: str) -> str:
    return base64.urlsafe_b64encode(f"after:{position} {name}".encode()).decode()


def _after(token: str) -> tuple[Position, str] | None:
    """The position of the first page, and the last name of the previous page; None if there is no previous page."""
    if not token:
        return None
    try:
        text = base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    first, _, name = text.removeprefix("after:").partition(" ")
    position = Position.of(first)
    if position is None or not text.startswith("after:"):
        detail = "`continue` must be the token of the previous page"
        raise ProblemError("bad-request", detail, errors=[FieldProblem("?continue", detail)])
    return position, name
