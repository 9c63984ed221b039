"""Logs of all pods of a graph or of a component, merged: lines as server-sent events, or as JSON."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

import aiohttp
from aiohttp import web
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import PODS, ObjectKey
from dynamo_shared.kube import KubeError

from dynamo_dynadmin.api.details import Details
from dynamo_dynadmin.api.kinds import DEPLOYMENTS, Kind
from dynamo_dynadmin.api.reading import CollectionReader
from dynamo_dynadmin.deploy.problems import FieldProblem
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.problems import ProblemError
from dynamo_dynadmin.http.streaming import Stream, Streams
from dynamo_dynadmin.identity.access import ResourceAttributes

#: Containers of one stream. More are more than a person reads.
CONTAINERS = 64
#: Lines that wait to be sent; a reader that is slower than engines log slows the reading of their logs.
_WAITING = 256
_LONGEST_LINE = 16384
#: A log may be silent for long; a connection that is dead is noticed by others. Seconds.
_SILENCE = 24 * 3600.0
_AT_ONCE_SILENCE = 30.0
#: Lines of an answer that does not follow.
_LINES = 10_000


class LogSource(NamedTuple):
    """A container whose log is read."""

    pod: ObjectKey
    container: str
    component: str


class Logs:
    """Reads logs with the caller's rights."""

    def __init__(self, details: Details, reading: CollectionReader, streams: Streams) -> None:
        self._details = details
        self._reading = reading
        self._streams = streams

    async def logs(self, call: Call, kind: Kind) -> web.StreamResponse:
        """Lines of all containers; with `follow` as a stream."""
        pods = await self._details.pods_of(call, kind)
        await self._reading.require(call, ResourceAttributes("get", PODS, call.namespace, subresource="log"))
        component = call.text("component")
        if component and kind is DEPLOYMENTS:
            require_component(component, await self._details.object(call, kind))
        sources = _sources(pods, component, call.text("pod"), call.text("container"))
        if len(sources) > CONTAINERS:
            detail = f"{len(sources)} containers; choose with component, pod or container at most {CONTAINERS}"
            raise ProblemError("bad-request", detail)
        if call.flag("follow"):
            return await self._follow(call, sources)
        return await self._lines(call, sources)

    async def _lines(self, call: Call, sources: list[LogSource]) -> web.StreamResponse:
        lines: list[dict[str, str]] = []

        async def keep(source: LogSource, time: str, text: str) -> None:
            if len(lines) < _LINES:
                lines.append(_row(source, time, text))

        failures = await asyncio.gather(
            *(
                self._read(call, source, _query(call, source, follow=False), _AT_ONCE_SILENCE, keep)
                for source in sources
            )
        )
        lines.sort(key=lambda each: each["time"])
        return call.answer({"items": lines, "problems": [each for each in failures if each]})

    async def _follow(self, call: Call, sources: list[LogSource]) -> web.StreamResponse:
        acts = [ResourceAttributes("get", PODS, call.namespace, subresource="log")]
        last = call.request.headers.get("Last-Event-ID", "")
        if last and _time(last) is None:
            raise ProblemError("bad-request", "Last-Event-ID is not one of this stream")
        async with self._streams.opened(call, acts) as stream:
            await self._merge(call, sources, stream, last)
        return stream.response

    async def _merge(self, call: Call, sources: list[LogSource], stream: Stream, last: str) -> None:
        queue: asyncio.Queue[tuple[LogSource, str, str] | None] = asyncio.Queue(_WAITING)

        async def keep(source: LogSource, time: str, text: str) -> None:
            await queue.put((source, time, text))

        async def one(source: LogSource) -> None:
            query = _query(call, source, follow=True, since=last)
            failure = await self._read(call, source, query, _SILENCE, keep)
            await queue.put((source, "", failure or "the container has ended"))

        async def all_of() -> None:
            await asyncio.gather(*(one(each) for each in sources))
            await queue.put(None)

        reading = asyncio.create_task(all_of(), name="logs")
        try:
            while True:
                try:
                    async with asyncio.timeout(stream.timeout(self._streams.heartbeat)):
                        item = await queue.get()
                except TimeoutError:
                    await stream.keep()
                    await stream.beat()
                    continue
                await stream.keep()
                if item is None:
                    await stream.send("end", {"detail": "all containers have ended"})
                    return
                source, time, text = item
                if time and last and time <= last:
                    continue  # the API server knows seconds, and the reader has these lines
                if time:
                    await stream.send("log", _row(source, time, text), time)
                else:
                    await stream.send("notice", _row(source, time, text))
        finally:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading

    async def _read(
        self,
        call: Call,
        source: LogSource,
        query: str,
        silence: float,
        keep: Callable[[LogSource, str, str], Awaitable[None]],
    ) -> str:
        """Read a log to its end; why it could not be read, or nothing."""
        try:
            async with call.kube.stream_log(source.pod, query, silence=silence) as content:
                async for line in _lines_of(content):
                    time, _, text = line.partition(" ")
                    # A node that cannot read a log says so in a line without a time.
                    await keep(source, *((time, text) if _time(time) is not None else ("", line)))
        except KubeError as error:
            return f"{source.pod.name}/{source.container}: {error.message[:500]}"
        return ""


async def _lines_of(content: aiohttp.StreamReader) -> Any:
    """Lines of a log, as text; of very long ones the beginning, which has the time."""
    rest, is_cut = b"", False
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if not is_cut:
                yield line[:_LONGEST_LINE].decode("utf-8", "replace")
            is_cut = False
        if len(rest) > _LONGEST_LINE:
            if not is_cut:
                yield rest[:_LONGEST_LINE].decode("utf-8", "replace")
            rest, is_cut = b"", True
    if rest and not is_cut:
        yield rest.decode("utf-8", "replace")


def require_component(component: str, graph: KubeObject) -> None:
    """ProblemError for a component that a graph does not have. One that has no pods is not an error: its logs are empty."""
    names = [each["name"] for each in graph["spec"].get("components") or ()]
    if component not in names:
        detail = f"{component} is not a component of this graph; one of {', '.join(names)}"
        raise ProblemError("bad-request", f"component: {detail}", errors=[FieldProblem("?component", detail)])


def _sources(pods: list[KubeObject], component: str, pod: str, container: str) -> list[LogSource]:
    return [
        LogSource(ObjectKey(each["metadata"]["namespace"], each["metadata"]["name"]), name, of_component)
        for each in pods
        for of_component in [str((each["metadata"].get("labels") or {}).get(labels.COMPONENT) or "")]
        for name in [str(c.get("name") or "") for c in (each.get("spec") or {}).get("containers") or ()]
        if component in ("", of_component) and pod in ("", each["metadata"]["name"]) and container in ("", name)
    ]


def _query(call: Call, source: LogSource, *, follow: bool, since: str = "") -> str:
    parameters: dict[str, str] = {"container": source.container, "timestamps": "true"}
    if follow:
        parameters["follow"] = "true"
    if since and (moment := _time(since)) is not None:
        # Whole seconds: a little too much, of which what is known is left out.
        parameters["sinceTime"] = moment.replace(microsecond=0).isoformat().replace("+00:00", "Z")
    elif call.text("sinceSeconds"):
        parameters["sinceSeconds"] = call.text("sinceSeconds")
    if not since:
        parameters["tailLines"] = call.text("tail") or "1000"
    if call.flag("previous"):
        parameters["previous"] = "true"
    return urlencode(parameters)


def _time(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text[:40].replace("Z", "+00:00"))
    except ValueError:
        # Nanoseconds, which Python does not read.
        head, _, fraction = text[:40].partition(".")
        digits = fraction.rstrip("Z")
        try:
            moment = datetime.fromisoformat(f"{head}+00:00") + timedelta(microseconds=int(digits[:6] or "0"))
        except (ValueError, OverflowError):
            return None
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return None


def _row(source: LogSource, time: str, text: str) -> dict[str, str]:
    return {
        "time": time,
        "pod": source.pod.name,
        "container": source.container,
        "component": source.component,
        "text": text,
    }
