"""Watches of the reflector: how they end, continue and start again."""

import asyncio
import json
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.kube.errors import Unavailable
from dynamo_shared.kube.reflector import ObjectChange
from dynamo_shared.kube.watch_wire import MAX_LINE_BYTES, Lines
from structlog.testing import capture_logs

from . import steps
from .followed import Followed, bookmark, event, failure, listed, pod, short


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
    assert followed.health == [(True, "watching pods")]


@pytest.mark.parametrize("end", ["end", "break"])
async def test_a_watch_continues_at_the_version_of_the_last_one(server: Any, end: str) -> None:
    server.then(
        steps.answer(listed(5, pod("a", 3))),
        steps.watch(event("MODIFIED", pod("a", 6)), bookmark(9), then=end),
        steps.watch(event("MODIFIED", pod("a", 10)), then="hang"),
    )
    followed = Followed(server)
    assert await followed.take(4) == ["ADDED a@3", "SYNCED 5", "MODIFIED a@6", "MODIFIED a@10"]
    assert server.requests[2].query["resourceVersion"] == "9"
    assert followed.health == [(True, "watching pods")]
    assert len(followed.waits) == (0 if end == "end" else 1)


@pytest.mark.parametrize(
    ("silent", "times", "level", "error"),
    [
        # The normal end of an idle watch. Longer than a busy machine pauses, because a late answer is logged, too.
        pytest.param(steps.watch(then="hang"), {"silence": 2.0}, "debug", "Silence", id="after its beginning"),
        # It ends at the time-out of the request.
        pytest.param(steps.hang(), {"timeout": 2.0, "silence": 600.0}, "info", "Timeout", id="from its beginning"),
    ],
)
async def test_a_silent_connection_is_closed(
    server: Any, silent: Any, times: dict[str, Any], level: str, error: str
) -> None:
    server.then(steps.answer(listed(5)), silent, steps.watch(event("ADDED", pod("a", 6)), then="hang"))
    with capture_logs() as logs:
        assert await Followed(server, **times).take(2) == ["SYNCED 5", "ADDED a@6"]
    assert [(each["log_level"], error in each["error"]) for each in logs] == [(level, True)]


@pytest.mark.parametrize("how", ["at the start", "in the middle"])
async def test_410_lists_again_and_reports_only_the_differences(server: Any, how: str) -> None:
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
    # The first relist is immediate, and health stays good.
    assert followed.waits == []
    assert followed.health == [(True, "watching pods")]


async def test_repeated_expiry_backs_off(server: Any) -> None:
    expired = [steps.answer(listed(5)), steps.watch(failure(410, "Expired"))] * 4
    server.then(*expired, steps.answer(listed(5)), steps.watch(event("ADDED", pod("a", 6)), then="hang"))
    followed = Followed(server)
    await followed.take(6)
    assert followed.waits == pytest.approx([0.4, 0.8, 1.6])


@pytest.mark.parametrize("code", [429, 500, 503, 504])
async def test_server_errors_back_off_and_continue_without_a_list(server: Any, code: int) -> None:
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
    assert followed.health[0] == (True, "watching pods")
    assert followed.health[1][0] is False
    assert followed.health[-1] == (True, "watching pods")


@pytest.mark.parametrize(("chance", "wait"), [(0.0, 9.1), (1.0, 9.3)])
async def test_retry_after_is_awaited_with_jitter(server: Any, chance: float, wait: float) -> None:
    # Watches that were rejected together must not return together.
    server.then(
        steps.answer(listed(5)),
        steps.refuse(429, headers={"Retry-After": "9"}),
        steps.watch(event("ADDED", pod("a", 6)), then="hang"),
    )
    followed = Followed(server)
    followed.reflector._randomness = lambda: chance
    await followed.take(2)
    assert followed.waits == pytest.approx([wait])


async def test_a_missing_type_is_awaited(server: Any) -> None:
    missing = steps.text("404 page not found\n", 404)
    server.then(missing, missing, steps.answer(listed(5)), steps.watch(then="hang"))
    followed = Followed(server)
    assert await followed.take(1) == ["SYNCED 5"]
    assert followed.waits == pytest.approx([1.0, 2.0])
    assert [ok for ok, _message in followed.health] == [False, False, True]
    assert "the cluster does not serve pods; install its CustomResourceDefinition" in followed.health[0][1]


async def test_an_optional_missing_type_is_absent_without_an_error(server: Any) -> None:
    missing = steps.text("404 page not found\n", 404)
    removed = [missing] * 8
    server.then(
        *[missing, missing, steps.answer(listed(5, pod("a", 3))), *removed, steps.answer(listed(9))],
        steps.watch(then="hang"),
    )
    followed = Followed(server, optional=True)
    assert await followed.take(7) == ["ABSENT", "ABSENT", "ADDED a@3", "SYNCED 5", "DELETED a@3", "ABSENT", "SYNCED 9"]
    assert followed.health == [(True, "watching pods")]


async def test_a_404_of_a_gateway_deletes_no_object_of_a_type_that_was_served(server: Any) -> None:
    missing = steps.text("404 page not found\n", 404)
    # Another error in between restarts the time.
    answers = [missing, steps.refuse(503), missing]
    server.then(
        *[*answers, steps.answer(listed(5, pod("a", 3))), *answers, steps.answer(listed(5, pod("a", 3)))],
        steps.watch(event("MODIFIED", pod("a", 6)), then="hang"),
    )
    followed = Followed(server, optional=True, served=True)
    assert await followed.take(4) == ["ADDED a@3", "SYNCED 5", "SYNCED 5", "MODIFIED a@6"]


async def test_a_type_without_the_right_to_read_is_awaited(server: Any) -> None:
    server.then(steps.refuse(403, "Forbidden", "no"), steps.answer(listed(5)), steps.watch(then="hang"))
    followed = Followed(server)
    assert await followed.take(1) == ["SYNCED 5"]
    assert followed.health[0] == (False, "no permission to list or watch pods: no")


async def test_a_type_that_is_removed_and_returns_is_listed_again(server: Any) -> None:
    missing = steps.text("404 page not found\n", 404)
    server.then(
        steps.answer(listed(5, pod("a", 3))), missing, missing, steps.answer(listed(9)), steps.watch(then="hang")
    )
    assert await Followed(server).take(4) == ["ADDED a@3", "SYNCED 5", "DELETED a@9", "SYNCED 9"]


async def test_refused_credentials_back_off_like_an_unavailable_server(server: Any) -> None:
    # No one has to act if a token is rotated, while a right is given by a person, and a type is installed by one.
    server.then(*[steps.refuse(401, "Unauthorized")] * 8, steps.answer(listed(5)), steps.watch(then="hang"))
    followed = Followed(server)
    assert await followed.take(1) == ["SYNCED 5"]
    assert followed.waits == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15.0])
    assert (followed.health[0][0], followed.health[-1][0]) == (False, True)


async def test_watches_that_end_at_once_back_off(server: Any) -> None:
    server.then(steps.answer(listed(5)), *[steps.watch()] * 3, steps.watch(event("ADDED", pod("a", 6)), then="hang"))
    followed = Followed(server)
    await followed.take(2)
    assert followed.waits == pytest.approx([0.2, 0.4, 0.8])


@pytest.mark.parametrize("how", ["500", "400", "garbage", "ends at once"])
async def test_a_version_at_which_no_watch_continues_leads_to_a_list(server: Any, how: str) -> None:
    # An object that the server cannot encode any more is older than the version of a list.
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
    assert followed.health[-1] == (True, "watching pods")


@pytest.mark.parametrize("status", [0, 403, 429, 503])
async def test_an_unavailable_or_rejecting_server_is_not_listed_again(server: Any, status: int) -> None:
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
    "garbage",
    [
        # Half a line, from a broken connection.
        b'{"type":"ADDED","object":{"metadata":{"name":"a"',
        b"<html>\n",
        b"[]\n",
        b"\xff\n",
        b'{"type":"ADDED"}\n',
        b'{"type":"ADDED","object":{}}\n',
        b'{"type":"ADDED","object":{"metadata":[]}}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":6}}}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":null}}}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":null,"resourceVersion":"6"}}}\n',
        b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"6"}}}\n',
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":""}}}\n',
        b'{"type":"PING","object":{"metadata":{"name":"a","resourceVersion":"6"}}}\n',
        b'{"type":"ERROR","object":{"code":"x"}}\n',
    ],
)
async def test_garbage_is_an_error_and_loses_nothing(server: Any, garbage: bytes) -> None:
    server.then(
        steps.answer(listed(5)),
        steps.watch(garbage, then="hang" if garbage.endswith(b"\n") else "break"),
        steps.watch(event("ADDED", pod("a", 6)), then="hang"),
    )
    assert await Followed(server).take(2) == ["SYNCED 5", "ADDED a@6"]
    assert server.requests[2].query["resourceVersion"] == "5"


async def test_a_second_iteration_continues_without_gap_and_without_repetition(server: Any) -> None:
    server.then(
        steps.answer(listed(5, pod("a", 3))),
        steps.watch(event("MODIFIED", pod("a", 6)), then="hang"),
        steps.watch(event("MODIFIED", pod("a", 7)), then="hang"),
    )
    followed = Followed(server)
    assert await followed.take(3) == ["ADDED a@3", "SYNCED 5", "MODIFIED a@6"]
    assert await followed.take(1) == ["MODIFIED a@7"]
    assert server.requests[2].query["resourceVersion"] == "6"


async def test_a_slow_reader_makes_the_server_wait(server: Any) -> None:
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
        # Both socket buffers of a local connection hold some MiB, but not 25 MiB.
        assert sent < total
        for _ in range(total - 1):
            await anext(changes)
        assert sent == total


def test_lines_are_the_same_however_they_are_split() -> None:
    text = b'{"a":1}\n\n{"b":2}\n{"c"'
    expected = [b'{"a":1}', b'{"b":2}']
    for size in range(1, len(text) + 1):
        lines = Lines()
        chunks = [text[start : start + size] for start in range(0, len(text), size)]
        assert [line for chunk in chunks for line in lines.feed(chunk)] == expected
        assert list(lines.feed(b":3}\n")) == [b'{"c":3}']


def test_a_line_without_end_is_rejected() -> None:
    lines = Lines()
    list(lines.feed(b"x" * MAX_LINE_BYTES))
    with pytest.raises(Unavailable):
        list(lines.feed(b"x"))
