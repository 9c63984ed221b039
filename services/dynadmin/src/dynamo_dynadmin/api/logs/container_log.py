"""Reads the log of one container, line by line. Content that containers and nodes write is not trusted."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import urlencode

import aiohttp
from dynamo_shared.kube import KubeClient, KubeError

from dynamo_dynadmin.api.logs.sources import LogSource

_LONGEST_LINE = 16384
#: Bytes that are split into lines in one step.
_CHUNK = 8192
_SECOND = 1_000_000_000
#: RFC 3339, as container runtimes write it: only such times become part of an event's id.
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:[0-9]{2})"
)


class ContainerLine(NamedTuple):
    """A line of a container's log. `time` is empty for a notice that replaces a log."""

    source: LogSource
    time: str
    text: str
    at: int = 0
    """the time in nanoseconds since 1970: nodes write it in different time zones"""

    def row(self) -> dict[str, str]:
        """The line in the format of the API."""
        return {
            "time": self.time,
            "pod": self.source.pod.name,
            "container": self.source.container,
            "component": self.source.component,
            "text": self.text,
        }


class LogPart(NamedTuple):
    """The lines of a log to read: those since a time, otherwise the last ones. All if neither is set."""

    tail: str = ""
    since_seconds: str = ""
    since: int = 0
    """time of the reader's last line, nanoseconds since 1970; 0 if there is none"""
    previous: bool = False

    def after(self, time: int) -> LogPart:
        """The remaining part after the line of this time; unchanged if the time is 0."""
        return LogPart(since=time, previous=self.previous) if time else self

    def query(self, container: str, *, follow: bool) -> str:
        """The query for the API server."""
        parameters = {"container": container, "timestamps": "true"}
        if follow:
            parameters["follow"] = "true"
        if self.since:
            # Whole seconds: the response may overlap, and known lines are dropped.
            moment = datetime.fromtimestamp(self.since // _SECOND, UTC)
            parameters["sinceTime"] = moment.isoformat().replace("+00:00", "Z")
        elif self.since_seconds:
            parameters["sinceSeconds"] = self.since_seconds
        if self.tail and not self.since:
            parameters["tailLines"] = self.tail
        if self.previous:
            parameters["previous"] = "true"
        return urlencode(parameters)


async def read_log(
    kube: KubeClient, source: LogSource, query: str, silence: float, keep: Callable[[ContainerLine], Awaitable[None]]
) -> str:
    """Read a log to its end, and pass its lines to `keep`. Returns why it cannot be read, or an empty text.

    `silence`: seconds for which the log may be silent.
    """
    try:
        async with kube.stream_log(source.pod, query, silence=silence) as content:
            async for line in _lines_of(content):
                time, _, text = line.partition(" ")
                # A node that cannot read a log reports this in a line without a time.
                at = nanoseconds(time)
                await keep(ContainerLine(source, time, text, at) if at is not None else ContainerLine(source, "", line))
    except KubeError as error:
        return f"{source.pod.name}/{source.container}: {error.message[:500]}"
    return ""


async def _lines_of(content: aiohttp.StreamReader) -> AsyncIterator[str]:
    """Lines of a log, as text; very long lines are truncated, but keep the time."""
    rest, is_cut = b"", False
    async for chunk in content.iter_chunked(_CHUNK):
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


def nanoseconds(text: str) -> int | None:
    """A time with its zone, as nanoseconds since 1970. None for any other text, and for times outside of 1970
    to 2262.
    """
    if (match := _TIME.fullmatch(text)) is None:
        return None
    seconds, fraction, zone = match.groups(default="0")
    try:
        moment = datetime.fromisoformat(f"{seconds}{zone.replace('Z', '+00:00')}")
    except ValueError:
        return None
    since = int(moment.timestamp()) * _SECOND + int(fraction.ljust(9, "0"))
    return since if _SECOND <= since < 1 << 63 else None
