"""Follows logs: of running containers, and of those that start while the stream is read."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import suppress
from sys import getsizeof
from typing import Protocol

from dynamo_shared.aio import Backoff, ended
from dynamo_shared.api.resources import PODS
from dynamo_shared.kube import KubeClient

from dynamo_dynadmin.api.logs.container_log import ContainerLine, LogPart, nanoseconds, read_log
from dynamo_dynadmin.api.logs.position import ALL_LINES, LAST_LINES, LogPosition, key_of
from dynamo_dynadmin.api.logs.sources import ContainerStart
from dynamo_dynadmin.state.entries import StoredObject
from dynamo_dynadmin.state.hub import Hub, Resync, changes

#: Logs that one stream, and all streams of one caller, read at a time. No person can read more.
CONTAINERS, OF_A_CALLER = 64, 128
#: The same for all callers of a replica: each log is a connection to the API server.
OF_ALL = 2000
#: Lines that wait to be sent, and their bytes in memory; a reader that is slower than the engines' logs slows down
#: reading them.
_WAITING, WAITING_BYTES = 256, 1 << 17
#: A log may be silent for long; dead connections are detected elsewhere. Seconds.
_SILENCE = 24 * 3600.0
#: Seconds of silence of all pods after which they are listed again: their owner may have been deleted.
_LIST_AGAIN = 15.0
#: First and longest wait, in seconds, before a broken log is read again. A log that ended normally may also be
#: incomplete: kubelets end each response after four hours, and the API server ends a response that a kubelet breaks off
#: as if it were complete.
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0
_TOO_MANY = f"not read: the limit of {CONTAINERS} logs is reached; select fewer with component, pod or container"
_TOO_MANY_OF_CALLER = f"not read: your streams already read {OF_A_CALLER} logs; close a stream"
_TOO_MANY_OF_ALL = f"not read: streams of all users already read {OF_ALL} logs; open the stream again later"


class FollowedPods(Protocol):
    """The pods of an object."""

    def concerns(self, pod: StoredObject) -> bool:
        """Whether the pod is one of them."""
        ...

    async def starts(self) -> list[ContainerStart] | None:
        """Their current containers; None when the pods and the object are deleted."""
        ...


class CallerLogs:
    """Counts the logs that all streams of one caller read concurrently."""

    def __init__(self, open_logs: Counter[str], caller: str) -> None:
        self._open = open_logs
        self._caller = caller

    def take(self) -> str:
        """Count a log that will be read; returns a reason if there are too many."""
        if self._open[self._caller] >= OF_A_CALLER:
            return _TOO_MANY_OF_CALLER
        if self._open.total() >= OF_ALL:
            return _TOO_MANY_OF_ALL
        self._open[self._caller] += 1
        return ""

    def leave(self) -> None:
        """Count a log as finished."""
        self._open -= Counter((self._caller,))


class LogFollower:
    """The lines of one stream; for a single use.

    Each start of a container is read once: `part` selects lines of the starts that exist when the stream begins; later
    starts are read completely. For a container that has not started, there is a notice with the reason. A log that
    breaks off is continued at the same place.

    A reader that reconnects has the lines up to its `position`. If the position does not name a start, either all lines
    of this start were sent, or it is a later start, whose lines are newer and must be sent.
    """

    def __init__(
        self,
        kube: KubeClient,
        hub: Hub,
        namespace: str,
        pods: FollowedPods,
        part: LogPart,
        *,
        of_caller: CallerLogs,
        position: LogPosition | None = None,
    ) -> None:
        self._kube = kube
        self._hub = hub
        self._namespace = namespace
        self._pods = pods
        self._part = part
        self._begun_at = position
        self._newest = position.newest if position is not None else ""
        self._newest_at = nanoseconds(self._newest) or 0
        self._places: dict[bytes, int] = {}
        """read position of each log that is read, or whose lines wait"""
        self._of_caller = of_caller
        self._lines: asyncio.Queue[tuple[bytes, ContainerLine | None] | None] = asyncio.Queue(_WAITING)
        self._bytes, self._room = 0, asyncio.Event()
        self._known: set[ContainerStart] = set()
        """the current containers"""
        self._running: set[ContainerStart] = set()
        """the running ones"""
        self._listed = asyncio.Event()
        """set after they were listed again"""
        self._handled: set[ContainerStart] = set()
        self._reading = 0

    async def lines(self) -> AsyncGenerator[ContainerLine]:
        """Lines as they arrive, until the object is deleted and its logs are read. Raises the exceptions of the pods'
        `starts`.
        """
        work = asyncio.create_task(self._run(), name="logs")
        try:
            while (item := await self._lines.get()) is not None:
                key, line = item
                if line is None:
                    self._places.pop(key, None)
                    continue
                self._bytes -= getsizeof(line.text)
                self._room.set()
                if line.at and key in self._places:
                    self._places[key] = line.at
                    if line.at > self._newest_at:
                        self._newest, self._newest_at = line.time, line.at
                yield line
            await work
        finally:
            await ended(work)

    @property
    def position(self) -> str:
        """The position of a reader that has all lines up to the last one."""
        return str(LogPosition(self._newest, self._places))

    async def _run(self) -> None:
        failure: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as readings:
                await self._start_readings(readings)
        except* Exception as group:
            failure = group.exceptions[0]
        await self._lines.put(None)
        if failure is not None:
            raise failure

    async def _start_readings(self, readings: asyncio.TaskGroup) -> None:
        part: LogPart | None = self._part
        while True:
            with self._hub.reading(PODS, self._namespace) as reader:
                try:
                    goes_on = await self._list(readings, part)
                    part = None
                    if not goes_on or self._part.previous:
                        return
                    async for batch in changes(reader, lambda: _LIST_AGAIN):
                        if batch and not any(self._pods.concerns(each) for each in batch):
                            continue
                        if not await self._list(readings, part):
                            return
                except Resync:
                    # Changes were lost. The list includes their results.
                    continue

    async def _list(self, readings: asyncio.TaskGroup, part: LogPart | None) -> bool:
        """Read the logs of started containers: `part` of them, or completely without it. Returns whether any container
        may still start.
        """
        starts = await self._pods.starts()
        self._running = {_the_start(each) for each in starts or () if each.runs}
        starts = [_the_start(each) for each in starts] if starts is not None else None
        self._known = set(starts or ())
        listed, self._listed = self._listed, asyncio.Event()
        listed.set()
        uids = {each.uid for each in self._known}
        self._handled = {each for each in self._handled if each.uid in uids}
        for each in starts or ():
            if each in self._handled:
                continue
            self._handled.add(each)
            if each.reason and not self._part.previous:
                await self._say(each, each.reason)
            elif self._reading >= CONTAINERS:
                await self._say(each, _TOO_MANY)
            elif refusal := self._of_caller.take():
                await self._say(each, refusal)
            else:
                self._reading += 1
                due = self._due(each, part) if part is not None else LogPart()
                self._places[key_of(each)] = due.since or (LAST_LINES if due.tail else ALL_LINES)
                readings.create_task(self._read(each, due)).add_done_callback(self._left)
        return starts is not None

    def _due(self, start: ContainerStart, part: LogPart) -> LogPart:
        """The part of a start, existing when the stream begins, that the reader lacks."""
        if self._begun_at is None:
            return part
        place = self._begun_at.places.get(key_of(start), self._newest_at)
        if place == ALL_LINES:
            return LogPart()
        # A caller who requested no earlier lines gets those since the newest.
        return part.after(self._newest_at if place == LAST_LINES and part.tail == "0" else place)

    def _left(self, _: asyncio.Task[None]) -> None:
        self._reading -= 1
        self._of_caller.leave()

    async def _read(self, start: ContainerStart, part: LogPart) -> None:
        """Read a log to its end, then report that all its lines are queued."""
        await self._read_to_its_end(start, part)
        await self._lines.put((key_of(start), None))

    async def _read_to_its_end(self, start: ContainerStart, part: LogPart) -> None:
        backoff, since, failure = Backoff(_FIRST_WAIT, _LONGEST_WAIT), part.since, ""
        key = key_of(start)

        async def keep(line: ContainerLine) -> None:
            nonlocal since
            if line.at and line.at <= part.since:
                return  # the API server's precision is seconds, and the reader has these lines
            if line.at > since:
                since = line.at
                backoff.reset()
            await self._put(key, line)

        while True:
            query = part.query(start.source.container, follow=True)
            before, failure = failure, await read_log(self._kube, start.source, query, _SILENCE, keep)
            wait = backoff.next()
            if failure and failure != before:
                await self._say(start, failure)
            if not failure and (part.previous or await self._ends(start, wait)):
                await self._say(start, "the container has ended")
                return
            if part.previous:
                return
            part = part.after(since)
            if failure:
                await asyncio.sleep(wait)
                if start not in self._known:
                    return

    async def _ends(self, start: ContainerStart, within: float) -> bool:
        """Whether a container whose log has ended has stopped: STATE reports it within a moment, or within `within`
        seconds.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while start in self._running:
                    await self._listed.wait()
        return start not in self._running

    async def _say(self, start: ContainerStart, text: str) -> None:
        await self._put(key_of(start), ContainerLine(start.source, "", text))

    async def _put(self, key: bytes, line: ContainerLine) -> None:
        size = getsizeof(line.text)
        while self._bytes and self._bytes + size > WAITING_BYTES:
            self._room.clear()
            await self._room.wait()
        self._bytes += size
        await self._lines.put((key, line))


def _the_start(each: ContainerStart) -> ContainerStart:
    """A start as a key, independent of whether its container runs."""
    return each._replace(runs=False)
