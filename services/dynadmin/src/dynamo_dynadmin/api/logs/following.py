"""Follows logs: of the containers that run, and of those that start while the stream is read."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import suppress
from sys import getsizeof
from typing import Protocol

from dynamo_shared.aio import Backoff, ended
from dynamo_shared.api.resources import PODS
from dynamo_shared.kube import KubeClient

from dynamo_dynadmin.api.logs.position import ALL_LINES, LAST_LINES, LogPosition, key_of
from dynamo_dynadmin.api.logs.reading import ContainerLine, LogPart, nanoseconds, read_log
from dynamo_dynadmin.api.logs.sources import ContainerStart
from dynamo_dynadmin.state.entries import StoredObject
from dynamo_dynadmin.state.hub import Hub, Resync, changes

#: Logs that one stream reads at a time, and all streams of one caller. More are more than a person reads.
CONTAINERS, OF_A_CALLER = 64, 128
#: Of all callers of a replica: each is a connection to the API server.
OF_ALL = 2000
#: Lines that wait to be sent, and their bytes in memory; a reader that is slower than engines log slows the reading of their
#: logs.
_WAITING, WAITING_BYTES = 256, 1 << 17
#: A log may be silent for long; a connection that is dead is noticed by others. Seconds.
_SILENCE = 24 * 3600.0
#: Silence of all pods after which they are listed again: the object that has them may be gone. Seconds.
_LIST_AGAIN = 15.0
#: Before a log that broke off is read on: the first wait and the longest, in seconds. One that ended of itself may have broken
#: off, too: kubelets end each answer after four hours, and the API server ends what a kubelet breaks off as if it were whole.
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 30.0
_TOO_MANY = f"not read: {CONTAINERS} other logs are; choose with component, pod or container"
_TOO_MANY_OF_CALLER = f"not read: {OF_A_CALLER} other logs are, in all streams of yours; close one"
_TOO_MANY_OF_ALL = f"not read: {OF_ALL} other logs are, in streams of all users; open it again later"


class FollowedPods(Protocol):
    """The pods of an object."""

    def concerns(self, pod: StoredObject) -> bool:
        """Whether it is one of them."""
        ...

    async def starts(self) -> list[ContainerStart] | None:
        """Their containers as they are now; None once they and the object are gone."""
        ...


class CallerLogs:
    """The logs that all streams of one caller read at a time."""

    def __init__(self, open_logs: Counter[str], caller: str) -> None:
        self._open = open_logs
        self._caller = caller

    def take(self) -> str:
        """Begin to read one; why not, where there are too many."""
        if self._open[self._caller] >= OF_A_CALLER:
            return _TOO_MANY_OF_CALLER
        if self._open.total() >= OF_ALL:
            return _TOO_MANY_OF_ALL
        self._open[self._caller] += 1
        return ""

    def leave(self) -> None:
        """One has been read."""
        self._open -= Counter((self._caller,))


class LogFollower:
    """The lines of one stream; use it once.

    Each start of a container is read once: `part` says which lines of the starts that there are when the stream begins, and
    later ones are read whole. A container that has not started has a notice with the reason. A log that breaks off is read
    on where it was.

    A reader that comes back has the lines up to its `position`. A start that this does not name has had all its lines sent, or
    is a later one: its lines that are newer than all of those are due.
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
        """of the logs that are read, or whose lines wait: what was taken of each"""
        self._of_caller = of_caller
        self._lines: asyncio.Queue[tuple[bytes, ContainerLine | None] | None] = asyncio.Queue(_WAITING)
        self._bytes, self._room = 0, asyncio.Event()
        self._known: set[ContainerStart] = set()
        """the containers as they are now"""
        self._running: set[ContainerStart] = set()
        """those that run"""
        self._listed = asyncio.Event()
        """they were listed again"""
        self._handled: set[ContainerStart] = set()
        self._reading = 0

    async def lines(self) -> AsyncGenerator[ContainerLine]:
        """Lines as they come, until the object is gone and its logs are read. Raises what `starts` of the pods raises."""
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
        """Where a reader is that has the lines up to the last one."""
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
                    # Changes were lost. The list has what came of them.
                    continue

    async def _list(self, readings: asyncio.TaskGroup, part: LogPart | None) -> bool:
        """Read what has started, `part` of it, or without one all of it. Whether anything may still start."""
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
        """What of a start that there is when the stream begins the reader does not have."""
        if self._begun_at is None:
            return part
        place = self._begun_at.places.get(key_of(start), self._newest_at)
        if place == ALL_LINES:
            return LogPart()
        # A caller who asked for no lines of before has those since the newest.
        return part.after(self._newest_at if place == LAST_LINES and part.tail == "0" else place)

    def _left(self, _: asyncio.Task[None]) -> None:
        self._reading -= 1
        self._of_caller.leave()

    async def _read(self, start: ContainerStart, part: LogPart) -> None:
        """Read a log to its end, and say that all its lines wait to be sent."""
        await self._read_to_its_end(start, part)
        await self._lines.put((key_of(start), None))

    async def _read_to_its_end(self, start: ContainerStart, part: LogPart) -> None:
        backoff, since, failure = Backoff(_FIRST_WAIT, _LONGEST_WAIT), part.since, ""
        key = key_of(start)

        async def keep(line: ContainerLine) -> None:
            nonlocal since
            if line.at and line.at <= part.since:
                return  # the API server knows seconds, and the reader has these lines
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
        """Whether a container whose log has ended runs no longer: STATE follows it within a moment, or so many seconds."""
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
    """A start as it is known, whether its container runs or has ended."""
    return each._replace(runs=False)
