"""Logs that are followed: of containers that run, that start later, that start again, and that break off."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from sys import getsizeof
from typing import Any, cast
from urllib.parse import parse_qs

import pytest
from dynamo_dynadmin.api.logs import follower
from dynamo_dynadmin.api.logs.container_log import LogPart
from dynamo_dynadmin.api.logs.follower import CONTAINERS, OF_A_CALLER, OF_ALL, WAITING_BYTES, CallerLogs, LogFollower
from dynamo_dynadmin.api.logs.position import LogPosition
from dynamo_dynadmin.api.logs.sources import SIMULATED, ContainerStart, LogSelection, is_simulated, starts
from dynamo_dynadmin.state.entries import StoredObject
from dynamo_dynadmin.state.hub import Hub
from dynamo_shared.aio import ended
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import PODS, ObjectKey
from dynamo_shared.kube import KubeError, NotFound
from dynamo_shared.state.versions import Version

from tests.building.waiting import turns

WITHIN = 30.0
ENDED = "the container has ended"
RUNNING, ENDS = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, {"terminated": {"exitCode": 1}}
TAIL = LogPart(tail="5")


def unscheduled(why: str) -> KubeObject:
    """The pod `p`, which has no node."""
    result = pod("p")
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
    result["status"]["conditions"] = [scheduled]
    return result


def waiting(reason: str) -> KubeObject:
    return {"waiting": {"reason": reason}}


def pod(name: str, state: KubeObject | None = None, *, restarts: int = 0, last: KubeObject | None = None) -> KubeObject:
    """A pod with the container `main`; without a state its node has not reported on it."""
    status: KubeObject = {"phase": "Pending"}
    if state is not None:
        main = {"name": "main", "restartCount": restarts, "state": state, "lastState": last or {}}
        status = {"phase": "Running", "containerStatuses": [main]}
    labels = {"nvidia.com/dynamo-component": "Decode"}
    metadata = {"namespace": "n", "name": name, "uid": f"uid-{name}", "labels": labels}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main"}]}, "status": status}


def test_a_container_on_a_simulated_node_has_no_log() -> None:
    observed = [pod("p", RUNNING), pod("q", RUNNING), pod("r")]
    for each, node in zip(observed, ("simulated", "real", "simulated"), strict=True):
        each["spec"]["nodeName"] = node
    reasons = [each.reason for each in starts(observed, LogSelection(), simulated={"simulated"})]
    assert reasons == [SIMULATED, "", "Pending"]


def test_a_node_of_kwok_is_simulated() -> None:
    assert is_simulated({"metadata": {"name": "n", "annotations": {"kwok.x-k8s.io/node": "fake"}}})
    assert not is_simulated({"metadata": {"name": "n", "annotations": None}})
    assert not is_simulated({"metadata": {"name": "n"}})


@pytest.mark.parametrize(
    ("observed", "restarts", "reason"),
    [
        (pod("p", RUNNING), 0, ""),
        (pod("p", ENDS), 0, ""),
        (pod("p", waiting("CrashLoopBackOff"), restarts=3, last=ENDS), 3, ""),
        (pod("p", waiting("ImagePullBackOff")), 0, "ImagePullBackOff"),
        (pod("p", waiting("")), 0, "Running"),
        (pod("p"), 0, "Pending"),
        (unscheduled("0/2 nodes are available"), 0, "Pending: 0/2 nodes are available"),
    ],
)
def test_a_start_of_a_container_has_a_log_once_it_has_begun(observed: KubeObject, restarts: int, reason: str) -> None:
    (start,) = starts([observed], LogSelection())
    assert (start.source.component, start.uid, start.restarts, start.reason) == ("Decode", "uid-p", restarts, reason)


@pytest.mark.parametrize(
    ("selection", "pods"),
    [
        (LogSelection(), ["a", "b"]),
        (LogSelection(component="Decode", pod="b", container="main"), ["b"]),
        (LogSelection(component="decode"), []),
        (LogSelection(pod="c"), []),
        (LogSelection(container="sidecar"), []),
    ],
)
def test_a_selection_leaves_out_what_it_does_not_name(selection: LogSelection, pods: list[str]) -> None:
    assert [each.source.pod.name for each in starts([pod("a"), pod("b")], selection)] == pods


def test_init_containers_and_their_sidecars_have_logs_too() -> None:
    """All others come first: a stream reads so many."""
    first, second = pod("a", waiting("PodInitializing")), pod("b", RUNNING)
    first["spec"]["initContainers"] = [{"name": "fetch"}, {"name": "gms"}]
    first["status"]["initContainerStatuses"] = [{"name": "fetch", "restartCount": 2, "state": RUNNING}]
    observed = [(each.source.container, each.restarts, each.reason) for each in starts([first, second], LogSelection())]
    assert observed == [("main", 0, "PodInitializing"), ("main", 0, ""), ("fetch", 2, ""), ("gms", 0, "Running")]


class Logs:
    """An API server that writes, for each reading of a pod's log, what the test says; then it ends, breaks off, or waits."""

    def __init__(self, **readings: list[list[str | KubeError | asyncio.Event]]) -> None:
        self.readings = readings
        self.queries: list[str] = []

    @asynccontextmanager
    async def stream_log(self, key: ObjectKey, query: str, **_: Any) -> AsyncIterator[Any]:
        self.queries.append(f"{key.name} {query}")
        yield Content(self.readings[key.name].pop(0))


class Content:
    """A log: lines, what it waits for, and an error that breaks it off."""

    def __init__(self, lines: list[str | KubeError | asyncio.Event]) -> None:
        self._lines = lines

    async def iter_chunked(self, _: int) -> AsyncIterator[bytes]:
        for each in self._lines:
            if isinstance(each, KubeError):
                raise each
            if isinstance(each, asyncio.Event):
                await each.wait()
            else:
                yield f"{each}\n".encode()


class Pods:
    """Pods that change."""

    def __init__(self, hub: Hub, *pods: KubeObject) -> None:
        self._hub = hub
        self._pods: dict[str, KubeObject] | None = {each["metadata"]["name"]: each for each in pods}
        self._sequence = 0
        self.gone = asyncio.Event()
        """`starts` has said so"""

    def concerns(self, entry: StoredObject) -> bool:
        return entry.key.name != "other"

    async def starts(self) -> list[ContainerStart] | None:
        if self._pods is None:
            self.gone.set()
            return None
        return starts(list(self._pods.values()), LogSelection())

    def change(self, *pods: KubeObject) -> None:
        self._pods = {**(self._pods or {}), **{each["metadata"]["name"]: each for each in pods}}
        for each in pods:
            self._offer(each["metadata"]["name"])

    def vanish(self) -> None:
        self._pods = None
        self._offer("p")

    def other(self) -> None:
        self._offer("other")

    def _offer(self, name: str) -> None:
        self._sequence += 1
        self._hub._offer(PODS.id, StoredObject(ObjectKey("n", name), self._sequence, Version("u", 1, ""), b"{}"))


class Stream:
    """A stream that a test reads."""

    def __init__(
        self,
        logs: Logs,
        *pods: KubeObject,
        part: LogPart = TAIL,
        last: str = "",
        of_callers: Counter[str] | None = None,
    ) -> None:
        hub = Hub(cast("Any", None), "c", [PODS])
        self.pods = Pods(hub, *pods)
        of_caller = CallerLogs(Counter() if of_callers is None else of_callers, "ann")
        position = LogPosition.of(last)
        self.follower: Any = LogFollower(
            cast("Any", logs), hub, "n", self.pods, part, of_caller=of_caller, position=position
        )
        self._lines = self.follower.lines()

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._lines.aclose()

    async def read(self, count: int) -> list[str]:
        """So many lines, each with its pod."""
        async with asyncio.timeout(WITHIN):
            return [f"{line.source.pod.name} {line.text}" for line in [await anext(self._lines) for _ in range(count)]]

    async def end(self) -> None:
        async with asyncio.timeout(WITHIN):
            with pytest.raises(StopAsyncIteration):
                await anext(self._lines)


def at(second: int, text: str) -> str:
    return f"2026-01-01T00:00:{second:02d}.000000000Z {text}"


async def test_pods_that_start_later_are_read_whole() -> None:
    logs = Logs(
        a=[[at(1, "first"), asyncio.Event()]],
        b=[[at(2, "second"), asyncio.Event()]],
        c=[[at(3, "third"), asyncio.Event()]],
    )
    async with Stream(logs, pod("a", RUNNING), pod("b")) as stream:
        assert sorted(await stream.read(2)) == ["a first", "b Pending"]
        stream.pods.change(pod("b", waiting("ContainerCreating")))
        assert await stream.read(1) == ["b ContainerCreating"]
        stream.pods.change(pod("b", RUNNING))
        assert await stream.read(1) == ["b second"]
        stream.pods.change(pod("c", RUNNING))
        assert await stream.read(1) == ["c third"]
    assert logs.queries == [
        "a container=main&timestamps=true&follow=true&tailLines=5",
        "b container=main&timestamps=true&follow=true",
        "c container=main&timestamps=true&follow=true",
    ]


async def test_each_start_of_a_container_is_read_once() -> None:
    logs = Logs(a=[[at(1, "first")], [at(2, "second")]])
    async with Stream(logs, pod("a", RUNNING)) as stream:
        assert await stream.read(1) == ["a first"]
        stream.pods.change(pod("a", waiting("CrashLoopBackOff"), last=ENDS))
        assert await stream.read(1) == [f"a {ENDED}"]
        stream.pods.change(pod("a", RUNNING, restarts=1, last=ENDS))
        assert await stream.read(1) == ["a second"]
        stream.pods.change(pod("a", waiting("CrashLoopBackOff"), restarts=1, last=ENDS))
        assert await stream.read(1) == [f"a {ENDED}"]
        stream.pods.vanish()
        await stream.end()


async def test_each_reason_is_reported_once() -> None:
    async with Stream(Logs(), pod("a")) as stream:
        assert await stream.read(1) == ["a Pending"]
        for reason in ("ErrImagePull", "ImagePullBackOff"):
            stream.pods.change(pod("a", waiting(reason)))
            assert await stream.read(1) == [f"a {reason}"]
        stream.pods.other()
        stream.pods.change(pod("a", waiting("ErrImagePull")), pod("b"))
        assert await stream.read(1) == ["b Pending"]


async def test_the_stream_goes_on_until_the_object_is_gone_and_its_logs_are_read() -> None:
    logs = Logs(a=[[at(1, "first"), at(2, "last")]])
    async with Stream(logs) as stream:
        stream.pods.change(pod("a", RUNNING))
        assert await stream.read(1) == ["a first"]
        stream.pods.vanish()
        assert await stream.read(2) == ["a last", f"a {ENDED}"]
        await stream.end()


async def test_a_log_that_breaks_off_is_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "_FIRST_WAIT", 0.0)
    gone = KubeError(0, "", "the API server went away")
    logs = Logs(a=[[at(1, "x"), at(2, "y"), gone], [gone], [at(2, "y"), at(3, "z"), asyncio.Event()]])
    async with Stream(logs, pod("a", RUNNING)) as stream:
        failure = "a a/main: the API server went away"
        assert await stream.read(4) == ["a x", "a y", failure, "a z"], "the same failure is said once"
    assert [each.split("&")[3] for each in logs.queries] == ["tailLines=5", *["sinceTime=2026-01-01T00%3A00%3A02Z"] * 2]


async def test_a_log_that_ends_while_its_container_runs_is_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kubelets end each answer after four hours: streams said that the container has ended, and nothing more."""
    monkeypatch.setattr(follower, "_FIRST_WAIT", 0.0)
    logs = Logs(a=[[at(1, "x")], [at(1, "x"), at(2, "y"), asyncio.Event()]])
    async with Stream(logs, pod("a", RUNNING)) as stream:
        assert await stream.read(2) == ["a x", "a y"]
    assert [each.split("&")[3] for each in logs.queries] == ["tailLines=5", "sinceTime=2026-01-01T00%3A00%3A01Z"]


async def test_a_log_of_a_pod_that_is_gone_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "_FIRST_WAIT", 0.0)
    logs = Logs(a=[[at(1, "x")]])
    async with Stream(logs, pod("a", RUNNING)) as stream:
        logs.readings["a"][0] += [stream.pods.gone, KubeError(404, "NotFound", "no such pod")]
        assert await stream.read(1) == ["a x"]
        stream.pods.vanish()
        assert await stream.read(1) == ["a a/main: no such pod"]
        await stream.end()


async def test_a_reader_that_reconnects_gets_only_missing_lines() -> None:
    last = at(2, "").strip()
    logs = Logs(a=[[at(2, "old"), at(3, "new"), asyncio.Event()]])
    async with Stream(logs, pod("a", RUNNING), last=last) as stream:
        assert await stream.read(1) == ["a new"]
        assert stream.follower.position == at(3, "").strip(), "of one log, the time says it all"
    assert since_of(logs.queries) == ["2026-01-01T00:00:02Z"]


def since_of(queries: list[str]) -> list[str]:
    """Since when logs were read; `all` or the number of last lines for those without a time."""
    asked = [parse_qs(each.split()[1]) for each in queries]
    return [(each.get("sinceTime") or each.get("tailLines") or ["all"])[0] for each in asked]


async def test_a_reader_that_reconnects_gets_older_lines_of_other_containers() -> None:
    """All of one log was sent, and of others nothing, or the beginning: lines older than the newest were lost."""
    logs = Logs(
        a=[[at(5, "five"), asyncio.Event()], [at(5, "five"), at(6, "six"), asyncio.Event()]],
        b=[[at(1, "one"), asyncio.Event()], [at(1, "one"), at(2, "two"), asyncio.Event()]],
        c=[[asyncio.Event()], [at(3, "three"), asyncio.Event()]],
        d=[[asyncio.Event()], [at(4, "four"), asyncio.Event()]],
    )
    three = [pod("a", RUNNING), pod("b", RUNNING), pod("c", RUNNING)]
    async with Stream(logs, *three) as stream:
        assert sorted(await stream.read(2)) == ["a five", "b one"]
        stream.pods.change(pod("d", RUNNING))
        await turns(100)
        last = stream.follower.position
    logs.queries.clear()
    async with Stream(logs, *three, pod("d", RUNNING), last=last) as stream:
        assert sorted(await stream.read(4)) == ["a six", "b two", "c three", "d four"]
    assert since_of(logs.queries) == ["2026-01-01T00:00:05Z", "2026-01-01T00:00:01Z", "5", "all"]


async def test_a_log_that_was_read_to_its_end_is_not_sent_again() -> None:
    logs = Logs(a=[[at(1, "one")], [at(1, "one")]], b=[[asyncio.Event()], [at(9, "nine"), asyncio.Event()]])
    async with Stream(logs, pod("a", ENDS), pod("b", RUNNING)) as stream:
        assert await stream.read(2) == ["a one", f"a {ENDED}"]
        reading = asyncio.ensure_future(stream.read(1))
        await turns(100)
        last = stream.follower.position
        await ended(reading)
    async with Stream(logs, pod("a", ENDS), pod("b", RUNNING), last=last) as stream:
        assert sorted(await stream.read(2)) == [f"a {ENDED}", "b nine"]


async def test_times_of_several_zones_are_compared_as_times() -> None:
    """Some runtimes write logs in the zone of their node."""
    later = "2026-01-01T02:00:03.000000000+02:00"
    logs = Logs(a=[[f"{later} new", asyncio.Event()]])
    async with Stream(logs, pod("a", RUNNING), last="2026-01-01T12:00:02.000000000+12:00") as stream:
        assert await stream.read(1) == ["a new"]
        assert stream.follower.position == later
    assert since_of(logs.queries) == ["2026-01-01T00:00:02Z"]


@pytest.mark.parametrize(
    "text", ["", "x", "2026-13-01T00:00:00Z", f"{at(1, '').strip()}~QQ", f"{at(1, '').strip()}~\xe4"]
)
def test_an_id_that_is_not_of_a_line_is_not_valid(text: str) -> None:
    assert LogPosition.of(text) is None


async def test_logs_of_previous_containers_are_not_followed() -> None:
    logs = Logs(a=[[at(1, "before")]])
    async with Stream(logs, pod("a", RUNNING, restarts=1), part=LogPart(tail="5", previous=True)) as stream:
        assert await stream.read(2) == ["a before", f"a {ENDED}"]
        await stream.end()


async def test_the_concurrent_logs_of_a_stream_are_limited() -> None:
    pods = [pod(f"p{number:03}", RUNNING) for number in range(CONTAINERS + 1)]
    logs = Logs()
    logs.readings = {each["metadata"]["name"]: [[asyncio.Event()]] for each in pods}
    async with Stream(logs, *pods) as stream:
        (line,) = await stream.read(1)
        assert line.startswith(f"p{CONTAINERS:03} not read: the limit of {CONTAINERS} logs is reached")


async def test_the_concurrent_logs_of_a_caller_are_limited() -> None:
    of_callers = Counter(ann=OF_A_CALLER - 1, bob=OF_A_CALLER)
    logs = Logs(a=[[at(1, "first")]], b=[[at(1, "second"), asyncio.Event()]])
    async with Stream(logs, pod("a", RUNNING), pod("b", RUNNING), of_callers=of_callers) as stream:
        assert await stream.read(2) == [
            f"b not read: your streams already read {OF_A_CALLER} logs; close a stream",
            "a first",
        ]
        stream.pods.change(pod("a", ENDS))
        assert await stream.read(1) == [f"a {ENDED}"]
        stream.pods.change(pod("b", RUNNING, restarts=1))
        assert await stream.read(1) == ["b second"]
        assert of_callers["ann"] == OF_A_CALLER
    assert of_callers == {"ann": OF_A_CALLER - 1, "bob": OF_A_CALLER}


async def test_few_bytes_of_lines_wait_for_a_slow_reader() -> None:
    """One wide character makes each of a line take four bytes in memory."""
    count, text = 50, "\N{ROCKET}" + "x" * 16_000
    logs = Logs(a=[[at(number, text) for number in range(count)]], b=[[at(number, text) for number in range(count)]])
    async with Stream(logs, pod("a", RUNNING), pod("b", RUNNING)) as stream:
        assert sorted(await stream.read(2))[0] == f"a {text}"
        await turns(1000)
        assert sum(getsizeof(line.text) for _, line in stream.follower._lines._queue) <= WAITING_BYTES
        stream.pods.change(pod("a", ENDS), pod("b", ENDS))
        lines = await stream.read(2 * count)
    assert set(lines) == {f"{name} {each}" for name in "ab" for each in (text, ENDED)}


async def test_a_failure_to_list_ends_the_stream() -> None:
    class Forbidden(Pods):
        async def starts(self) -> list[ContainerStart] | None:
            raise NotFound(404, "NotFound", "the namespace is gone")

    hub = Hub(cast("Any", None), "c", [PODS])
    async with aclosing(
        LogFollower(cast("Any", None), hub, "n", Forbidden(hub), TAIL, of_caller=CallerLogs(Counter(), "ann")).lines()
    ) as lines:
        with pytest.raises(NotFound):
            await anext(lines)


def test_the_concurrent_logs_of_all_callers_are_limited() -> None:
    of_callers = Counter({f"user-{number}": OF_A_CALLER for number in range(OF_ALL // OF_A_CALLER)})
    last = CallerLogs(of_callers, "last")
    taken = [last.take() for _ in range(OF_ALL - of_callers.total() + 1)]
    assert taken[-2:] == ["", f"not read: streams of all users already read {OF_ALL} logs; open the stream again later"]
    last.leave()
    assert last.take() == ""
