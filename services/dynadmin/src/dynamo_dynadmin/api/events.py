"""Kubernetes Events of an object and of all that it owns, read with the caller's rights: a list, or
server-sent events.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from math import inf
from typing import Any, NamedTuple
from urllib.parse import urlencode

from aiohttp import web
from dynamo_shared.aio import spread
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import EVENTS
from dynamo_shared.kube import Expired, NotFound
from dynamo_shared.kube.events import last_observed
from dynamo_shared.kube.watch_wire import BOOKMARK, ERROR, Lines, decode_event

from dynamo_dynadmin.api.details import Details
from dynamo_dynadmin.api.kinds import Kind
from dynamo_dynadmin.api.pages import pages
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.problems import ProblemError
from dynamo_dynadmin.http.pulse import Pulse
from dynamo_dynadmin.http.streaming import Stream, StreamEnded, Streams
from dynamo_dynadmin.identity.access import ResourceAttributes

#: Searched pages of a namespace. The API server keeps events for an hour, and lists them by name: the events of one
#: object may come after those of all others.
PAGES = 40
#: Seconds of one watch; then a new watch starts.
_WATCH = 1800
#: Pause between two watches. Seconds.
_NEXT_AFTER = 1.0
#: Minimum interval between two look-ups of an object's family, for events of unknown objects. Seconds.
_FAMILY_EVERY = 0.5
#: Events of objects that are not known yet: STATE follows within milliseconds. Maximum seconds, and number.
_HELD_FOR, _HELD = 5.0, 512
#: Deleted objects of a family whose last events are still reported.
_FORMER = 10_000
#: Characters of a message, or of another text. events.k8s.io allows 1,024, core/v1 any number.
_LONGEST = 4096
_GONE = "the events since then are no longer available; start the stream without Last-Event-ID"


class EventReader:
    """Answers with Events."""

    def __init__(self, details: Details, streams: Streams) -> None:
        self._details = details
        self._streams = streams

    async def events(self, call: Call, kind: Kind) -> web.StreamResponse:
        """Newest first; with `watch`, oldest first, followed by new ones."""
        root = await self._details.object(call, kind)
        last = call.request.headers.get("Last-Event-ID", "") if call.flag("watch") else ""
        if last and not (last.isascii() and last.isdecimal() and len(last) <= 20):
            raise ProblemError("bad-request", "Last-Event-ID does not belong to this stream")
        rows: list[dict[str, Any]] = []
        if not last:
            known: set[tuple[str, str]] | None = None
            listed = pages(call.kube, EVENTS, call.namespace, most=PAGES)
            async with aclosing(listed):
                async for page in listed:
                    # The first page comes before the family: an event may be about an object that is new.
                    known = known or await self._details.descendants(call, kind, root)
                    rows += [row(each) for each in page.get("items") or () if _about(each) in known]
                    rows = sorted(rows, key=lambda each: str(each["time"]), reverse=True)[: call.number("limit", 200)]
                    last = str(page["metadata"]["resourceVersion"])
        if not call.flag("watch"):
            return call.answer({"items": rows})
        acts = [
            ResourceAttributes("watch", EVENTS, call.namespace),
            ResourceAttributes("get", kind.resource, call.namespace, call.name),
        ]
        async with self._streams.opened(call, acts) as stream:
            follower = _EventFollower(self._details, call, kind, stream)
            await follower.follow(reversed(rows), last)
        return stream.response


class _HeldEvent(NamedTuple):
    """An event about an object that is not known yet, the end of its wait, and the version before it. The whole Event may
    have a megabyte.
    """

    row: dict[str, Any]
    about: tuple[str, str]
    until: float
    before: str


class _EventFollower:
    """One stream: events wait briefly until the object that they are about is known.

    A reader that reconnects resumes after its last id. So no id is beyond a waiting event, and some events may come
    twice.
    """

    def __init__(self, details: Details, call: Call, kind: Kind, stream: Stream) -> None:
        self._details = details
        self._call = call
        self._kind = kind
        self._stream = stream
        self._family: set[tuple[str, str]] = set()
        self._refreshed = float("-inf")
        self._held: deque[_HeldEvent] = deque()
        self._last = ""
        """version of the newest event"""

    async def follow(self, first: Iterable[dict[str, Any]], version: str) -> None:
        """Sends existing events, `synced`, then new ones. StreamEnded."""
        for each in first:
            await self._stream.send("event", each)
        self._last = version
        await self._stream.send("synced", {"position": version}, version)
        async with Pulse(self._watched(version), self._stream) as pulse:
            async for event in pulse:
                await self._release()
                if event is not None:
                    await self._take(event)
                pulse.longest = _FAMILY_EVERY if self._held else inf

    async def _take(self, event: KubeObject) -> None:
        before, self._last = self._last, str(event["metadata"]["resourceVersion"])
        about = _about(event)
        if about not in self._family:
            await self._refresh()
        if about in self._family:
            await self._send([row(event)])
        elif len(self._held) < _HELD:
            self._held.append(_HeldEvent(row(event), about, time.monotonic() + _HELD_FOR, before))

    async def _release(self) -> None:
        """Send waiting events that now belong to the family; drop those that waited too long."""
        if not self._held:
            return
        await self._refresh()
        known = [each.row for each in self._held if each.about in self._family]
        now = time.monotonic()
        self._held = deque(each for each in self._held if each.about not in self._family and now < each.until)
        await self._send(known)

    async def _refresh(self) -> None:
        if time.monotonic() - self._refreshed < _FAMILY_EVERY:
            return
        self._refreshed = time.monotonic()
        try:
            root = await self._details.object(self._call, self._kind)
        except NotFound:
            # Deleted: the last events about it and its children still arrive.
            return
        present = await self._details.descendants(self._call, self._kind, root)
        self._family |= present
        if len(self._family) > len(present) + _FORMER:
            self._family = present

    async def _send(self, rows: Sequence[dict[str, Any]]) -> None:
        for each in rows:
            identity = self._held[0].before if self._held else self._last
            await self._stream.send("event", each, identity if each is rows[-1] else "")

    async def _watched(self, version: str) -> AsyncGenerator[KubeObject, None]:
        """New or changed events, from consecutive watches."""
        while True:
            query = urlencode(
                {
                    "watch": "1",
                    "resourceVersion": version,
                    "allowWatchBookmarks": "true",
                    "timeoutSeconds": str(_WATCH),
                }
            )
            try:
                async with self._call.kube.stream(EVENTS, self._call.namespace, query, silence=_WATCH + 60) as content:
                    lines = Lines()
                    async for chunk in content.iter_any():
                        for line in lines.feed(chunk):
                            change = decode_event(line)
                            if change.type == ERROR:
                                raise StreamEnded("resync", _GONE)
                            version = str(change.object["metadata"]["resourceVersion"])
                            if change.type not in (BOOKMARK, "DELETED"):
                                yield change.object
            except Expired:
                raise StreamEnded("resync", _GONE) from None
            # The next watch includes the events in between. A server or a proxy may end each watch at once.
            await asyncio.sleep(spread(_NEXT_AFTER))


def row(event: KubeObject) -> dict[str, Any]:
    """An Event in the format of the API."""
    series = event.get("series") or {}
    kind, name = _about(event)
    return {
        "id": _text(event["metadata"].get("uid")),
        "time": _text(last_observed(event) or event["metadata"].get("creationTimestamp")),
        "type": _text(event.get("type") or "Normal"),
        "reason": _text(event.get("reason")),
        "message": _text(event.get("note")),
        "count": int(series.get("count") or event.get("deprecatedCount") or 1),
        "object": {"kind": kind, "name": name},
        "reporter": _text(event.get("reportingController")),
    }


def _about(event: KubeObject) -> tuple[str, str]:
    regarding = event.get("regarding") or {}
    return _text(regarding.get("kind")), _text(regarding.get("name"))


def _text(value: object) -> str:
    return str(value or "")[:_LONGEST]
