"""The reflector against everything a server and a network can do to it."""

import asyncio
import gc
import itertools
import json
import math
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from aiohttp import StreamReader, web
from dynamo_shared.aio import Gate
from dynamo_shared.api.resources import PODS, ObjectKey
from dynamo_shared.kube import KubeClient, reflector
from dynamo_shared.kube.errors import Unavailable
from dynamo_shared.kube.reflector import Absent, ObjectChange, Reflector, Synced
from dynamo_shared.kube.watch_wire import MAX_LINE_BYTES, Lines, ListPage
from structlog.testing import capture_logs

from . import steps


def pod(name: str, version: int, uid: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": {**metadata, "managedFields": [{"manager": "x"}]}, "spec": {"v": version}}


def listed(version: int, *pods: dict[str, Any], more: str = "") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(pods)}


def event(kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": {"apiVersion": "v1", "kind": "Pod", **obj}}


def bookmark(version: int) -> dict[str, Any]:
    return {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": str(version)}}}


def failure(code: int, reason: str = "", **more: Any) -> dict[str, Any]:
    return {"type": "ERROR", "object": {"kind": "Status", "code": code, "reason": reason, "message": reason, **more}}


class Followed:
    """A reflector of the scripted server, and what it reported."""

    def __init__(self, server: Any, *, timeout: float = 5, **options: Any) -> None:
        self.health: list[tuple[bool, str]] = []
        self.waits: list[float] = []
        clock = itertools.count(1000)
        self.reflector = Reflector(
            server.client(timeout=timeout),
            PODS,
            on_health=lambda ok, message: self.health.append((ok, message)),
            clock=lambda: float(next(clock)),
            sleep=self._sleep,
            randomness=lambda: 0.5,
            **options,
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def take(self, count: int) -> list[str]:
        """The next items, in short: `ADDED a@3`, `SYNCED 5`."""
        return [short(item) for item in await self.items(count)]

    async def items(self, count: int) -> list[ObjectChange | Synced | Absent]:
        results: list[ObjectChange | Synced | Absent] = []
        async with asyncio.timeout(60), aclosing(self.reflector.changes()) as changes:
            async for item in changes:
                results.append(item)
                if len(results) == count:
                    break
        return results


def short(item: ObjectChange | Synced | Absent) -> str:
    if isinstance(item, Absent):
        return "ABSENT"
    if isinstance(item, Synced):
        return f"SYNCED {item.resource_version}"
    return f"{item.kind} {item.key.name}@{item.obj['metadata']['resourceVersion']}"


async def test_list_then_watch(server: Any) -> None:
    server.then(
        steps.answer(listed(5, pod("a", 3), pod("b", 4))),
        steps.watch(
            event("MODIFIED", pod("a", 6)), event("DELETED", pod("b", 7)), event("ADDED", pod("c", 8)), then="hang"
        ),
    )
    followed = Followed(server, namespace="ns", label_selector="x=y")
    items = await followed.items(6)
    assert [short(item) for item in items] == [
        *("ADDED a@3", "ADDED b@4", "SYNCED 5"),
        *("MODIFIED a@6", "DELETED b@7", "ADDED c@8"),
    ]
    first, *_, last = items
    assert isinstance(first, ObjectChange)
    assert isinstance(last, ObjectChange)
    assert (first.listed, last.listed) == (True, False)
    assert first.key == ObjectKey("ns", "a")
    assert (first.obj["apiVersion"], first.obj["kind"]) == ("v1", "Pod")
    assert all("managedFields" not in item.obj["metadata"] for item in items if isinstance(item, ObjectChange))
    assert last.received_at > first.received_at > 0
    watch = server.requests[1].query
    assert server.requests[0].query == {"labelSelector": "x=y", "limit": "500"}
    assert watch == {
        "labelSelector": "x=y",
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "5",
        "timeoutSeconds": "450",
    }
    assert followed.health == [(True, "following pods")]


async def test_synced_carries_what_there_is(server: Any) -> None:
    server.then(steps.answer(listed(5, pod("a", 3))), steps.watch(then="hang"))
    *_, synced = await Followed(server).items(2)
    assert isinstance(synced, Synced)
    assert dict(synced.versions) == {ObjectKey("ns", "a"): ("uid-a", "3")}


async def test_pages(server: Any) -> None:
    server.then(steps.answer(listed(5, pod("a", 3), more="t")), steps.answer(listed(5, pod("b", 4))))
    server.watches.append(steps.watch(then="hang"))
    assert await Followed(server, page_size=1).take(3) == ["ADDED a@3", "ADDED b@4", "SYNCED 5"]
    assert {"limit": "1", "continue": "t"} in [each.query for each in server.requests]


async def test_changes_do_not_wait_for_further_pages_of_a_list(server: Any) -> None:
    rest, more = asyncio.Event(), asyncio.Event()

    async def second_page(request: Any) -> Any:
        await rest.wait()
        return await steps.answer(listed(5, pod("b", 2), pod("c", 3), pod("d", 4)))(request)

    async def watch(request: Any) -> Any:
        response = web.StreamResponse()
        await response.prepare(request)
        for each in (
            event("MODIFIED", pod("b", 6)),
            event("DELETED", pod("c", 7)),
            event("MODIFIED", pod("a", 8)),
            event("ADDED", pod("new", 9)),
        ):
            await response.write(json.dumps(each).encode() + b"\n")
        await more.wait()
        await response.write(json.dumps(event("MODIFIED", pod("d", 10))).encode() + b"\n")
        await asyncio.Event().wait()

    server.then(steps.answer(listed(5, pod("a", 1), more="t")), second_page)
    server.watches.append(watch)
    changes = Followed(server).reflector.changes()
    async with asyncio.timeout(60), aclosing(changes):
        early = [short(await anext(changes)) for _ in range(5)]
        # What the list says of b and c is older. Who follows may know of c from before.
        assert early == ["ADDED a@1", "ADDED b@6", "DELETED c@7", "MODIFIED a@8", "ADDED new@9"]
        rest.set()
        assert [short(await anext(changes)) for _ in range(2)] == ["ADDED d@4", "SYNCED 5"]
        more.set()
        assert short(await anext(changes)) == "MODIFIED d@10"
    assert sum("watch" in each.query for each in server.requests) == 1


async def test_a_watch_that_ends_while_its_list_comes_is_gone_on_with_after_it(server: Any) -> None:
    rest = asyncio.Event()

    async def second_page(request: Any) -> Any:
        await rest.wait()
        return await steps.answer(listed(5, pod("b", 4)))(request)

    server.then(steps.answer(listed(5, pod("a", 3), more="t")), second_page)
    server.watches.extend(
        [steps.watch(event("MODIFIED", pod("a", 6)), then="break"), steps.watch(event("MODIFIED", pod("b", 7)))]
    )
    changes = Followed(server).reflector.changes()
    async with asyncio.timeout(60), aclosing(changes):
        assert [short(await anext(changes)) for _ in range(2)] == ["ADDED a@3", "MODIFIED a@6"]
        rest.set()
        assert [short(await anext(changes)) for _ in range(3)] == ["ADDED b@4", "SYNCED 5", "MODIFIED b@7"]
    assert [each.query["resourceVersion"] for each in server.requests if "watch" in each.query] == ["5", "6"]


async def test_changes_that_came_before_a_list_was_left_midway_are_in_the_next_one(server: Any) -> None:
    first = steps.answer(listed(5, pod("a", 3), more="t"))
    server.then(first, steps.hang(), steps.answer(listed(7, pod("a", 6), pod("b", 4))))
    server.watches.extend([steps.watch(event("MODIFIED", pod("a", 6)), then="hang"), steps.watch(then="hang")])
    followed = Followed(server)
    assert await followed.take(2) == ["ADDED a@3", "MODIFIED a@6"]
    assert await followed.take(2) == ["ADDED b@4", "SYNCED 7"]


async def test_a_list_that_fails_midway_backs_off_whatever_its_watch_says_meanwhile(server: Any) -> None:
    said = asyncio.Event()

    async def second_page(request: Any) -> Any:
        await said.wait()
        said.clear()
        return await steps.refuse(504)(request)

    first = steps.answer(listed(5, pod("a", 3), more="t"))
    server.then(*[first, second_page] * 3, steps.answer(listed(9, pod("a", 8))))
    server.watches.extend(steps.watch(event("MODIFIED", pod("a", 6 + n)), then="hang") for n in range(3))
    server.watches.append(steps.watch(then="hang"))
    followed = Followed(server)
    async with asyncio.timeout(60), aclosing(followed.reflector.changes()) as changes:
        async for item in changes:
            if short(item) in ("MODIFIED a@6", "MODIFIED a@7", "MODIFIED a@8"):
                said.set()
            elif isinstance(item, Synced):
                break
    assert followed.waits == pytest.approx([0.2, 0.4, 0.8])
    assert [ok for ok, _message in followed.health] == [False, False, False, True]


async def test_pages_are_let_go_of_while_nothing_happens(server: Any) -> None:
    server.then(steps.answer(listed(5, pod("a", 3), more="t")), steps.answer(listed(5, pod("b", 4))))
    server.watches.append(steps.watch(then="hang"))
    changes = Followed(server).reflector.changes()
    async with asyncio.timeout(60), aclosing(changes):
        assert [short(await anext(changes)) for _ in range(3)] == ["ADDED a@3", "ADDED b@4", "SYNCED 5"]
        following = asyncio.ensure_future(anext(changes))
        while not any("watch" in each.query for each in server.requests):
            await asyncio.sleep(0)
        held = [each for each in gc.get_objects() if type(each) is ListPage]
        following.cancel()
        await asyncio.wait((following,))
    assert held == []


async def test_lists_pass_the_gate_and_watches_do_not(server: Any) -> None:
    server.then(steps.answer(listed(5, pod("a", 3), more="t")), steps.answer(listed(5, pod("b", 4))))
    server.watches.append(steps.watch(then="hang"))
    gate = Gate(1, longest=60)
    async with gate.passed():
        taken = asyncio.create_task(Followed(server, gate=gate).take(3))
        await asyncio.wait([taken], timeout=0.05)
        assert not server.requests
    assert await taken == ["ADDED a@3", "ADDED b@4", "SYNCED 5"]
    async with asyncio.timeout(60), gate.passed():
        pass


@pytest.mark.parametrize("count", [1, 4], ids=["list", "watch"])
async def test_closing_it_ends_its_list_and_its_watch(count: int, server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server.then(
        steps.answer(listed(5, pod("a", 3), pod("b", 4))), steps.watch(event("MODIFIED", pod("a", 6)), then="hang")
    )
    gate, watches, stream = Gate(1, longest=60), list[str](), KubeClient.stream

    @asynccontextmanager
    async def noted(*args: Any, **options: Any) -> AsyncIterator[StreamReader]:
        watches.append("open")
        async with stream(*args, **options) as body:
            try:
                yield body
            finally:
                watches.clear()

    monkeypatch.setattr(KubeClient, "stream", noted)
    assert len(await Followed(server, gate=gate).take(count)) == count
    assert not gate._free.locked()
    assert not watches


@pytest.mark.parametrize("end", ["end", "break"])
async def test_a_watch_goes_on_where_the_last_one_was(server: Any, end: str) -> None:
    server.then(
        steps.answer(listed(5, pod("a", 3))),
        steps.watch(event("MODIFIED", pod("a", 6)), bookmark(9), then=end),
        steps.watch(event("MODIFIED", pod("a", 10)), then="hang"),
    )
    followed = Followed(server)
    assert await followed.take(4) == ["ADDED a@3", "SYNCED 5", "MODIFIED a@6", "MODIFIED a@10"]
    assert server.requests[2].query["resourceVersion"] == "9"
    assert followed.health == [(True, "following pods")]
    assert len(followed.waits) == (0 if end == "end" else 1)


async def test_a_half_line_of_a_broken_connection_is_not_an_event(server: Any) -> None:
    server.then(
        steps.answer(listed(5)),
        steps.watch(b'{"type":"ADDED","object":{"metadata":{"name":"a"', then="break"),
        steps.watch(event("ADDED", pod("a", 6)), then="hang"),
    )
    assert await Followed(server).take(2) == ["SYNCED 5", "ADDED a@6"]
    assert server.requests[2].query["resourceVersion"] == "5"


async def test_a_silent_connection_is_given_up(server: Any) -> None:
    server.then(
        steps.answer(listed(5)), steps.watch(then="hang"), steps.watch(event("ADDED", pod("a", 6)), then="hang")
    )
    # Longer than a busy machine stands still: what is answered late is logged, too.
    followed = Followed(server, silence=2.0)
    with capture_logs() as logs:
        assert await followed.take(2) == ["SYNCED 5", "ADDED a@6"]
    # Where nothing happens, that is what happens.
    assert [(each["log_level"], "Silence" in each["error"]) for each in logs] == [("debug", True)]


async def test_a_watch_that_is_not_answered_ends_with_the_time_of_a_request_and_is_logged(server: Any) -> None:
    server.then(steps.answer(listed(5)), steps.hang(), steps.watch(event("ADDED", pod("a", 6)), then="hang"))
    with capture_logs() as logs:
        assert await Followed(server, timeout=2.0, silence=600.0).take(2) == ["SYNCED 5", "ADDED a@6"]
    assert [(each["log_level"], "Timeout" in each["error"]) for each in logs] == [("info", True)]


@pytest.mark.parametrize("how", ["at the start", "in the middle"])
async def test_410_lists_again_and_reports_only_what_differs(server: Any, how: str) -> None:
    gone = steps.refuse(410, "Expired") if how == "at the start" else steps.watch(failure(410, "Expired"))
    server.then(
        steps.answer(listed(5, *(pod(name, 3) for name in ("same", "changed", "vanished", "remade")))),
        gone,
        steps.answer(listed(20, pod("same", 3), pod("changed", 15), pod("remade", 17, "other"), pod("new", 18))),
        steps.watch(bookmark(21), then="hang"),
    )
    followed = Followed(server)
    items = await followed.items(11)
    assert [short(item) for item in items[5:]] == [
        "MODIFIED changed@15",
        "DELETED remade@16",
        "ADDED remade@17",
        "ADDED new@18",
        "DELETED vanished@20",
        "SYNCED 20",
    ]
    remade, vanished = items[6], items[9]
    assert isinstance(remade, ObjectChange)
    assert isinstance(vanished, ObjectChange)
    assert remade.obj["metadata"]["uid"] == "uid-remade"
    assert vanished.listed
    assert vanished.obj == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "vanished", "namespace": "ns", "uid": "uid-vanished", "resourceVersion": "20"},
    }
    # The first relist is at once; health never suffered.
    assert followed.waits == []
    assert followed.health == [(True, "following pods")]


async def test_expiring_again_and_again_backs_off(server: Any) -> None:
    expired = [steps.answer(listed(5)), steps.watch(failure(410, "Expired"))] * 4
    server.then(*expired, steps.answer(listed(5)), steps.watch(event("ADDED", pod("a", 6)), then="hang"))
    followed = Followed(server)
    await followed.take(6)
    assert followed.waits == pytest.approx([0.4, 0.8, 1.6])


async def test_a_list_that_expires_midway_starts_over_and_the_second_time_without_pages(server: Any) -> None:
    first = steps.answer(listed(5, pod("a", 3), pod("b", 3), more="t"))
    second = steps.answer(listed(7, pod("a", 3), pod("c", 6), more="t"))
    whole = steps.answer(listed(9, pod("a", 8), pod("d", 8)))
    expired = steps.refuse(410, "Expired")
    server.then(first, expired, second, expired, whole)
    server.watches.extend([steps.watch(then="hang")] * 3)
    followed = Followed(server, page_size=2)
    assert await followed.take(8) == [
        *("ADDED a@3", "ADDED b@3", "ADDED c@6", "MODIFIED a@8", "ADDED d@8"),
        *("DELETED b@9", "DELETED c@9", "SYNCED 9"),
    ]
    assert [each.query for each in server.requests if "watch" not in each.query][4] == {}


@pytest.mark.parametrize("code", [429, 500, 503, 504])
async def test_failures_of_the_server_back_off_and_go_on_without_a_list(server: Any, code: int) -> None:
    server.then(
        steps.answer(listed(5)),
        *[steps.refuse(code)] * 3,
        steps.watch(failure(code)),
        steps.watch(event("ADDED", pod("a", 6)), then="break"),
        steps.watch(event("ADDED", pod("b", 7)), then="hang"),
    )
    followed = Followed(server)
    assert await followed.take(3) == ["SYNCED 5", "ADDED a@6", "ADDED b@7"]
    assert followed.waits == pytest.approx([0.2, 0.4, 0.8, 1.6, 0.2])
    assert {observed.query["resourceVersion"] for observed in server.requests[1:5]} == {"5"}
    assert followed.health[0] == (True, "following pods")
    assert followed.health[1][0] is False
    assert followed.health[-1] == (True, "following pods")


@pytest.mark.parametrize(("chance", "wait"), [(0.0, 9.1), (1.0, 9.3)])
async def test_retry_after_is_waited_and_spread(server: Any, chance: float, wait: float) -> None:
    # Watches that were refused together must not come back together.
    server.then(
        steps.answer(listed(5)),
        steps.refuse(429, headers={"Retry-After": "9"}),
        steps.watch(event("ADDED", pod("a", 6)), then="hang"),
    )
    followed = Followed(server)
    followed.reflector._randomness = lambda: chance
    await followed.take(2)
    assert followed.waits == pytest.approx([wait])


async def test_a_type_that_is_not_installed_is_waited_for(server: Any) -> None:
    missing = steps.text("404 page not found\n", 404)
    server.then(missing, missing, steps.answer(listed(5)), steps.watch(then="hang"))
    followed = Followed(server)
    assert await followed.take(1) == ["SYNCED 5"]
    assert followed.waits == pytest.approx([1.0, 2.0])
    assert [ok for ok, _message in followed.health] == [False, False, True]
    assert "pods is not served: is its CustomResourceDefinition installed?" in followed.health[0][1]


async def test_a_type_that_need_not_be_there_is_absent_and_no_trouble(server: Any) -> None:
    missing = steps.text("404 page not found\n", 404)
    removed = [missing] * 8
    server.then(
        *[missing, missing, steps.answer(listed(5, pod("a", 3))), *removed, steps.answer(listed(9))],
        steps.watch(then="hang"),
    )
    followed = Followed(server, optional=True)
    assert await followed.take(7) == ["ABSENT", "ABSENT", "ADDED a@3", "SYNCED 5", "DELETED a@3", "ABSENT", "SYNCED 9"]
    assert followed.health == [(True, "following pods")]


async def test_a_404_of_a_gateway_removes_nothing_of_a_type_that_was_served(server: Any) -> None:
    missing = steps.text("404 page not found\n", 404)
    # Something else than 404 in between: the time begins again.
    answers = [missing, steps.refuse(503), missing]
    server.then(
        *[*answers, steps.answer(listed(5, pod("a", 3))), *answers, steps.answer(listed(5, pod("a", 3)))],
        steps.watch(event("MODIFIED", pod("a", 6)), then="hang"),
    )
    followed = Followed(server, optional=True, served=True)
    assert await followed.take(4) == ["ADDED a@3", "SYNCED 5", "SYNCED 5", "MODIFIED a@6"]


async def test_a_type_that_may_not_be_read_is_waited_for(server: Any) -> None:
    server.then(steps.refuse(403, "Forbidden", "no"), steps.answer(listed(5)), steps.watch(then="hang"))
    followed = Followed(server)
    assert await followed.take(1) == ["SYNCED 5"]
    assert followed.health[0] == (False, "may not list or watch pods: no")


async def test_a_type_that_is_removed_and_comes_back_is_listed_again(server: Any) -> None:
    missing = steps.text("404 page not found\n", 404)
    server.then(
        steps.answer(listed(5, pod("a", 3))), missing, missing, steps.answer(listed(9)), steps.watch(then="hang")
    )
    assert await Followed(server).take(4) == ["ADDED a@3", "SYNCED 5", "DELETED a@9", "SYNCED 9"]


async def test_watches_that_end_at_once_back_off(server: Any) -> None:
    server.then(steps.answer(listed(5)), *[steps.watch()] * 3, steps.watch(event("ADDED", pod("a", 6)), then="hang"))
    followed = Followed(server)
    await followed.take(2)
    assert followed.waits == pytest.approx([0.2, 0.4, 0.8])


@pytest.mark.parametrize("how", ["500", "400", "garbage", "ends at once"])
async def test_a_version_that_no_watch_goes_on_from_is_left_by_a_list(server: Any, how: str) -> None:
    # What the server cannot encode, or not any more, is behind the version of a list.
    stuck = {
        "500": steps.watch(failure(500, "InternalError")),
        "400": steps.refuse(400, "BadRequest"),
        "garbage": steps.watch(b"<html>\n"),
        "ends at once": steps.watch(),
    }[how]
    server.then(
        steps.answer(listed(5, pod("a", 3))),
        *[stuck] * 6,
        steps.answer(listed(9, pod("a", 3), pod("b", 8))),
        steps.watch(event("ADDED", pod("c", 10)), then="hang"),
    )
    followed = Followed(server)
    assert await followed.take(5) == ["ADDED a@3", "SYNCED 5", "ADDED b@8", "SYNCED 9", "ADDED c@10"]
    assert followed.waits == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 6.4])
    assert followed.health[-1] == (True, "following pods")


@pytest.mark.parametrize("status", [0, 403, 429, 503])
async def test_a_server_that_is_away_or_refuses_is_not_listed_for_it(server: Any, status: int) -> None:
    away = steps.refuse(status) if status else steps.reset()
    watch = steps.watch(event("ADDED", pod("a", 6)), then="hang")
    server.then(steps.answer(listed(5)), *[away] * 12, watch)
    assert await Followed(server).take(2) == ["SYNCED 5", "ADDED a@6"]


async def test_an_event_reported_twice_is_yielded_once(server: Any) -> None:
    server.then(
        steps.answer(listed(5, pod("a", 3))),
        steps.watch(
            event("MODIFIED", pod("a", 6)),
            event("MODIFIED", pod("a", 6)),
            event("DELETED", pod("a", 7)),
            event("DELETED", pod("a", 7)),
            event("ADDED", pod("b", 8)),
            then="hang",
        ),
    )
    assert (await Followed(server).take(5))[2:] == ["MODIFIED a@6", "DELETED a@7", "ADDED b@8"]


@pytest.mark.parametrize(
    "sign",
    [
        event("ADDED", pod("x", 2)),
        failure(504, "Timeout", details={"causes": [{"reason": "ResourceVersionTooLarge", "message": "too large"}]}),
    ],
)
async def test_a_data_store_that_was_set_back_is_listed_again(server: Any, sign: dict[str, Any]) -> None:
    server.then(
        steps.answer(listed(500, pod("a", 400))),
        steps.watch(sign),
        steps.answer(listed(3, pod("x", 2))),
        steps.watch(then="hang"),
    )
    assert await Followed(server).take(5) == ["ADDED a@400", "SYNCED 500", "ADDED x@2", "DELETED a@3", "SYNCED 3"]


async def test_a_restored_server_that_has_passed_the_known_number_is_noticed_soon(server: Any) -> None:
    server.then(
        steps.answer(listed(20, pod("a", 3), pod("b", 15))),
        steps.watch(then="break"),
        # Restored to 10, and at 25 by now: "b" never existed, and no watch from 20 on reports "c".
        steps.answer(listed(25)),
        steps.watch(event("ADDED", pod("d", 26))),
        steps.answer(listed(26, pod("a", 3), pod("c", 18), pod("d", 26))),
        steps.answer(listed(26, pod("a", 3), pod("c", 18), pod("d", 26))),
        steps.watch(then="hang"),
    )
    followed = Followed(server, compare=True)
    assert await followed.take(7) == [
        *("ADDED a@3", "ADDED b@15", "SYNCED 20"),
        *("ADDED d@26", "ADDED c@18", "DELETED b@26", "SYNCED 26"),
    ]
    first, resumed = (server.requests[number].query for number in (1, 3))
    assert int(first["timeoutSeconds"]) >= 200
    assert 10 <= int(resumed["timeoutSeconds"]) <= 20


@pytest.mark.parametrize("compared_a_second", [math.inf, 1e-6], ids=["compared", "not-compared"])
async def test_a_server_that_was_set_back_between_two_watches_is_noticed_before_the_second(
    compared_a_second: float, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shut-down ends watches in good order, and a request that is repeated until the server is back hides the break."""
    monkeypatch.setattr(reflector, "COMPARED_A_SECOND", compared_a_second)
    server.then(
        steps.answer(listed(20, pod("a", 2))),
        steps.watch(bookmark(21)),
        # Restored to 3, with the same object. A watch from 21 on would say nothing of "b".
        steps.answer(listed(3, pod("a", 2))),
        steps.answer(listed(4, pod("a", 2), pod("b", 4))),
        steps.watch(then="hang"),
    )
    followed = Followed(server, compare=True)
    assert await followed.take(4) == ["ADDED a@2", "SYNCED 20", "ADDED b@4", "SYNCED 4"]


async def test_many_objects_are_compared_only_now_and_then_and_after_an_interruption(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "COMPARED_A_SECOND", 1e-6)
    server.then(
        steps.answer(listed(5, pod("a", 3))),
        steps.watch(bookmark(6)),
        # Between two watches that follow each other no more than the number is read.
        steps.answer(listed(6)),
        steps.watch(bookmark(7), then="break"),
        steps.answer(listed(8)),
        steps.watch(bookmark(9)),
        steps.answer(listed(9, pod("a", 3))),
        steps.watch(event("ADDED", pod("b", 10)), then="hang"),
    )
    followed = Followed(server, compare=True)
    assert await followed.take(3) == ["ADDED a@3", "SYNCED 5", "ADDED b@10"]
    assert [each.query.get("watch", "list") for each in server.requests] == [
        *("list", "true", "list", "true", "list", "true", "list", "true")
    ]


@pytest.mark.parametrize(
    "garbage",
    [
        b"<html>\n",
        b"[]\n",
        b"\xff\n",
        b'{"type":"ADDED"}\n',
        b'{"type":"ADDED","object":{}}\n',
        b'{"type":"ADDED","object":{"metadata":[]}}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n',
        b'{"type":"ERROR","object":{"code":"x"}}\n',
    ],
)
async def test_garbage_is_a_failure_and_nothing_is_lost(server: Any, garbage: bytes) -> None:
    server.then(
        steps.answer(listed(5)),
        steps.watch(garbage, then="hang"),
        steps.watch(event("ADDED", pod("a", 6)), then="hang"),
    )
    assert await Followed(server).take(2) == ["SYNCED 5", "ADDED a@6"]


@pytest.mark.parametrize(
    "garbage",
    [
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 503},
        {"metadata": {}, "items": []},
        {"metadata": {"resourceVersion": ""}, "items": []},
        listed(9, {}),
        listed(9, {"metadata": []}),
        [],
    ],
    ids=lambda garbage: json.dumps(garbage)[:60],
)
async def test_what_a_gateway_answers_in_place_of_a_list_is_a_failure_and_deletes_nothing(
    server: Any, garbage: Any
) -> None:
    server.then(
        steps.answer(listed(5, pod("a", 3))),
        steps.refuse(410, "Expired"),
        steps.answer(garbage),
        steps.answer(listed(9, pod("a", 3), pod("b", 8))),
        steps.watch(then="hang"),
    )
    assert await Followed(server).take(4) == ["ADDED a@3", "SYNCED 5", "ADDED b@8", "SYNCED 9"]


async def test_a_page_that_is_too_large_is_asked_for_in_smaller_ones(server: Any) -> None:
    followed = Followed(server)
    followed.reflector._client = server.client(max_response_bytes=300)
    server.then(steps.text("x" * 301), steps.answer(listed(5)), steps.watch(then="hang"))
    assert await followed.take(1) == ["SYNCED 5"]
    assert server.requests[1].query["limit"] == "62"


async def test_pages_that_do_not_come_in_time_are_asked_for_in_smaller_ones(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow API server, or a slow way to it, never had five hundred pods ready in time, whenever they were asked for."""
    sizes: list[str] = []
    followed = Followed(server)
    sent = followed.reflector._client.raw_get

    async def raw_get(path: str, *, accept: str = "") -> bytes:
        sizes.append(path.partition("limit=")[2])
        if len(sizes) <= 5:
            raise Unavailable(0, "Timeout" if len(sizes) != 3 else "Unreachable", "no answer within 30 s")
        return await sent(path, accept=accept)

    monkeypatch.setattr(followed.reflector._client, "raw_get", raw_get)
    server.then(steps.answer(listed(5, pod("a", 3))), steps.watch(then="hang"))
    assert await followed.take(2) == ["ADDED a@3", "SYNCED 5"]
    assert sizes == ["500", "250", "125", "125", "62", "50"]


@pytest.mark.parametrize(
    ("seconds", "asked"), [(1.0, ["50", "100", "200", "200"]), (6.0, ["50"] * 4)], ids=["quick", "slow"]
)
async def test_pages_grow_again_as_long_as_they_come_quickly(
    server: Any, monkeypatch: pytest.MonkeyPatch, seconds: float, asked: list[str]
) -> None:
    """One slow minute of the API server left a kind with small pages, ten times as many requests, until a restart."""
    sizes: list[str] = []
    followed = Followed(server, page_size=200)
    sent, now = followed.reflector._client.raw_get, itertools.count(0.0, seconds)
    followed.reflector._clock = lambda: next(now)

    async def raw_get(path: str, *, accept: str = "") -> bytes:
        sizes.append(path.partition("limit=")[2].partition("&")[0])
        if len(sizes) <= 2:
            raise Unavailable(0, "Timeout", "no answer within 30 s")
        return await sent(path, accept=accept)

    monkeypatch.setattr(followed.reflector._client, "raw_get", raw_get)
    names = ("a", "b", "c")
    server.then(
        steps.answer(listed(5)),
        *(steps.answer(listed(6, pod(name, 3), more="t")) for name in names),
        steps.answer(listed(6)),
    )
    server.watches += [steps.refuse(410, "Expired"), steps.watch(then="hang")]
    assert await followed.take(5) == ["SYNCED 5", *(f"ADDED {name}@3" for name in names), "SYNCED 6"]
    assert sizes == ["200", "100", "50", *asked]


async def test_a_list_whose_later_pages_are_slow_comes_to_its_end(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick first page made the next one as large as the one that did not come in time: so each list began again."""
    followed = Followed(server, page_size=200)
    sent = followed.reflector._client.raw_get
    sizes: list[str] = []

    async def raw_get(path: str, *, accept: str = "") -> bytes:
        size = path.partition("limit=")[2].partition("&")[0]
        sizes.append(size)
        assert len(sizes) < 20, "without end"
        if "continue=" in path and int(size) > 100:
            raise Unavailable(0, "Timeout", "no answer within 30 s")
        if "continue=" not in path:
            return json.dumps(listed(5, pod("a", 3), more="t")).encode()
        return await sent(path, accept=accept)

    monkeypatch.setattr(followed.reflector._client, "raw_get", raw_get)
    server.then(steps.answer(listed(5, pod("b", 4))))
    server.watches.append(steps.watch(then="hang"))
    assert await followed.take(3) == ["ADDED a@3", "ADDED b@4", "SYNCED 5"]
    assert sizes == ["200", "200", "100", "100"]


async def test_what_is_compared_makes_no_page_larger(server: Any) -> None:
    """Metadata come quickly where objects do not: each list would begin with pages that do not come in time."""
    followed = Followed(server, compare=True)
    followed.reflector._page_size = 50
    server.then(
        *[
            steps.answer(listed(5)),
            steps.watch(bookmark(6)),
            steps.answer(listed(6, more="t")),
            steps.answer(listed(6)),
        ],
        steps.watch(event("ADDED", pod("a", 7)), then="hang"),
    )
    assert await followed.take(2) == ["SYNCED 5", "ADDED a@7"]
    assert [each.query["limit"] for each in server.requests if "limit" in each.query] == ["50"] * 3


async def test_what_is_compared_is_asked_for_in_smaller_pages_where_it_is_too_large(server: Any) -> None:
    # Annotations of one object may have 256 KiB: those of a tenant fill an answer by themselves.
    followed = Followed(server, compare=True)
    followed.reflector._client = server.client(max_response_bytes=300)
    server.then(
        *[steps.answer(listed(5)), steps.watch(bookmark(6)), steps.text("x" * 301), steps.answer(listed(6))],
        steps.watch(event("ADDED", pod("a", 7)), then="hang"),
    )
    assert await followed.take(2) == ["SYNCED 5", "ADDED a@7"]
    assert server.requests[3].query["limit"] == "62"
    assert followed.waits == []
    assert followed.health == [(True, "following pods")]


async def test_a_second_iteration_goes_on_without_gap_and_without_repetition(server: Any) -> None:
    server.then(
        steps.answer(listed(5, pod("a", 3))),
        steps.watch(event("MODIFIED", pod("a", 6)), then="hang"),
        steps.watch(event("MODIFIED", pod("a", 7)), then="hang"),
    )
    followed = Followed(server)
    assert await followed.take(3) == ["ADDED a@3", "SYNCED 5", "MODIFIED a@6"]
    assert await followed.take(1) == ["MODIFIED a@7"]
    assert server.requests[2].query["resourceVersion"] == "6"


async def test_deletions_that_were_left_midway_are_reported_by_the_next_iteration(server: Any) -> None:
    before = steps.answer(listed(5, pod("a", 3), pod("b", 3), pod("c", 3)))
    after = steps.answer(listed(20, pod("c", 17, "other")))
    server.then(before, steps.refuse(410, "Expired"), after, after, after, steps.watch(then="hang"))
    followed = Followed(server)
    assert (await followed.take(5))[4:] == ["DELETED c@16"]
    assert await followed.take(2) == ["ADDED c@17", "DELETED a@20"]
    assert await followed.take(2) == ["DELETED b@20", "SYNCED 20"]


async def test_a_list_that_was_left_midway_is_completed_by_the_next_iteration(server: Any) -> None:
    everything = steps.answer(listed(5, pod("a", 3), pod("b", 4)))
    server.then(everything, everything, steps.watch(then="hang"))
    followed = Followed(server)
    assert await followed.take(1) == ["ADDED a@3"]
    assert await followed.take(2) == ["ADDED b@4", "SYNCED 5"]


async def test_a_reader_that_is_slow_makes_the_server_wait(server: Any) -> None:
    sent = 0
    total = 400
    padding = "x" * 65536

    async def endless(request: Any) -> Any:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        for number in range(total):
            line = event("ADDED", {**pod(f"p{number}", 10 + number), "data": padding})
            await response.write(json.dumps(line).encode() + b"\n")
            sent += 1
        await asyncio.Event().wait()

    server.then(steps.answer(listed(5)), endless)
    changes = Followed(server).reflector.changes()
    async with asyncio.timeout(60), aclosing(changes):
        await anext(changes)
        await anext(changes)
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.2)
        # Buffers of both sides of a local socket hold some MiB; 25 MiB they do not.
        assert sent < total
        for _ in range(total - 1):
            await anext(changes)
        assert sent == total


def test_lines_are_the_same_however_they_are_cut() -> None:
    text = b'{"a":1}\n\n{"b":2}\n{"c"'
    expected = [b'{"a":1}', b'{"b":2}']
    for size in range(1, len(text) + 1):
        lines = Lines()
        chunks = [text[start : start + size] for start in range(0, len(text), size)]
        assert [line for chunk in chunks for line in lines.feed(chunk)] == expected
        assert list(lines.feed(b":3}\n")) == [b'{"c":3}']


def test_a_line_without_end_is_refused() -> None:
    lines = Lines()
    list(lines.feed(b"x" * MAX_LINE_BYTES))
    with pytest.raises(Unavailable):
        list(lines.feed(b"x"))
