"""Lists of the reflector: pages of any size and speed, a concurrent watch, and interrupted lists."""

import asyncio
import gc
import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from aiohttp import StreamReader, web
from dynamo_shared.aio import Gate
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import Unavailable
from dynamo_shared.kube.reflector import BYTES_AT_ONCE, Synced
from dynamo_shared.kube.watch_wire import ListPage

from tests.building.waiting import counted_turns

from . import steps
from .followed import Followed, bookmark, event, listed, pod, short


async def test_synced_carries_the_existing_objects(server: Any) -> None:
    server.then(steps.answer(listed(5, pod("a", 3))), steps.watch(then="hang"))
    *_, synced = await Followed(server).items(2)
    assert isinstance(synced, Synced)
    assert dict(synced.versions) == {ObjectKey("ns", "a"): ("uid-a", "3")}


async def test_pages(server: Any) -> None:
    server.then(steps.answer(listed(5, pod("a", 3), more="t")), steps.answer(listed(5, pod("b", 4))))
    server.watches.append(steps.watch(then="hang"))
    assert await Followed(server, page_size=1).take(3) == ["ADDED a@3", "ADDED b@4", "SYNCED 5"]
    assert {"limit": "1", "continue": "t"} in [each.query for each in server.requests]


@pytest.mark.parametrize(("count", "size"), [(40, 100_000), (1500, 10)])
async def test_other_tasks_run_while_a_page_is_handled(server: Any, count: int, size: int) -> None:
    """A page of large objects took a second, in which the process answered nothing."""
    page = listed(5, *({**pod(f"p{number}", 3), "spec": {"large": "x" * size}} for number in range(count)))
    server.then(steps.answer(page))
    server.watches.append(steps.watch(then="hang"))
    in_a_row = Counter[int]()
    async with (
        asyncio.timeout(60),
        counted_turns() as rounds,
        aclosing(Followed(server).reflector.changes()) as changes,
    ):
        for _ in range(count):
            await anext(changes)
            in_a_row[rounds()] += 1
    assert max(in_a_row.values()) <= 1 + BYTES_AT_ONCE // max(size, 512)


async def test_changes_do_not_wait_for_the_remaining_pages_of_a_list(server: Any) -> None:
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
        # The list has older versions of b and c. A follower may know c from before.
        assert early == ["ADDED a@1", "ADDED b@6", "DELETED c@7", "MODIFIED a@8", "ADDED new@9"]
        rest.set()
        assert [short(await anext(changes)) for _ in range(2)] == ["ADDED d@4", "SYNCED 5"]
        more.set()
        assert short(await anext(changes)) == "MODIFIED d@10"
    assert sum("watch" in each.query for each in server.requests) == 1


async def test_a_watch_that_ends_during_its_list_continues_afterwards(server: Any) -> None:
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


async def test_changes_before_an_interrupted_list_are_in_the_next_one(server: Any) -> None:
    first = steps.answer(listed(5, pod("a", 3), more="t"))
    server.then(first, steps.hang(), steps.answer(listed(7, pod("a", 6), pod("b", 4))))
    server.watches.extend([steps.watch(event("MODIFIED", pod("a", 6)), then="hang"), steps.watch(then="hang")])
    followed = Followed(server)
    assert await followed.take(2) == ["ADDED a@3", "MODIFIED a@6"]
    assert await followed.take(2) == ["ADDED b@4", "SYNCED 7"]


async def test_a_list_that_fails_midway_backs_off_whatever_its_watch_reports(server: Any) -> None:
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


async def test_pages_are_released_while_nothing_happens(server: Any) -> None:
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


async def test_lists_wait_at_the_gate_and_watches_do_not(server: Any) -> None:
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
async def test_closing_the_reflector_ends_its_list_and_its_watch(
    count: int, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
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


async def test_pages_keep_their_size_if_the_whole_list_is_too_large(server: Any) -> None:
    """With 30,000 Deployments, three lists that expired midway made pages of one object, so every further list expired."""
    page, expired = steps.answer(listed(5, pod("a", 3), more="t")), steps.refuse(410, "Expired")
    whole = steps.text("x" * 1000)
    server.then(page, expired, page, expired, whole, page, expired, page, expired, whole, page, steps.answer(listed(5)))
    server.watches.extend([steps.watch(then="hang")] * 5)
    followed = Followed(server, max_response_bytes=900)
    assert await followed.take(2) == ["ADDED a@3", "SYNCED 5"]
    asked = [each.query.get("limit") for each in server.requests if "watch" not in each.query]
    assert asked == [*["500"] * 4, None, *["500"] * 4, None, *["500"] * 2]


async def test_pages_grow_again_after_large_objects(server: Any) -> None:
    """A tenant's large objects, once read, made pages of seven objects until a restart."""
    page, last = steps.answer(listed(5, more="t")), steps.answer(listed(5))
    server.then(steps.text("x" * 301), steps.text("x" * 301), last, *[page] * 8, last)
    server.watches += [steps.refuse(410, "Expired"), steps.refuse(410, "Expired"), steps.watch(then="hang")]
    followed = Followed(server, max_response_bytes=300)
    assert await followed.take(2) == ["SYNCED 5", "SYNCED 5"]
    asked = [each.query["limit"] for each in server.requests if "watch" not in each.query]
    assert asked == ["500", "62", "7", "7", "14", "28", *["56"] * 6]


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
async def test_an_answer_of_a_gateway_is_an_error_and_deletes_nothing(server: Any, garbage: Any) -> None:
    server.then(
        steps.answer(listed(5, pod("a", 3))),
        steps.refuse(410, "Expired"),
        steps.answer(garbage),
        steps.answer(listed(9, pod("a", 3), pod("b", 8))),
        steps.watch(then="hang"),
    )
    assert await Followed(server).take(4) == ["ADDED a@3", "SYNCED 5", "ADDED b@8", "SYNCED 9"]


async def test_a_too_large_page_is_requested_in_smaller_pages(server: Any) -> None:
    followed = Followed(server, max_response_bytes=300)
    server.then(steps.text("x" * 301), steps.answer(listed(5)), steps.watch(then="hang"))
    assert await followed.take(1) == ["SYNCED 5"]
    assert server.requests[1].query["limit"] == "62"


async def test_pages_that_time_out_are_requested_in_smaller_pages(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow API server or network never delivered five hundred pods in time, however often they were requested."""
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
async def test_pages_grow_again_while_they_arrive_quickly(
    server: Any, monkeypatch: pytest.MonkeyPatch, seconds: float, asked: list[str]
) -> None:
    """After one slow minute of the API server, a kind kept small pages, ten times as many requests, until a restart."""
    sizes: list[str] = []
    now = itertools.count(0.0, seconds)
    followed = Followed(server, page_size=200, clock=lambda: next(now))
    sent = followed.reflector._client.raw_get

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


async def test_a_list_whose_later_pages_are_slow_is_completed(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quick first page made the next one as large as the page that timed out, so each list started again."""
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


async def test_comparisons_do_not_enlarge_pages(server: Any) -> None:
    """Metadata arrive quickly even if objects do not: each list would start with pages that time out."""
    followed = Followed(server, compare=True)
    followed.reflector._lists._size = 50
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


async def test_a_too_large_comparison_is_requested_in_smaller_pages(server: Any) -> None:
    # The annotations of one object may have 256 KiB: those of one tenant can fill an answer.
    followed = Followed(server, compare=True, max_response_bytes=300)
    server.then(
        *[steps.answer(listed(5)), steps.watch(bookmark(6)), steps.text("x" * 301), steps.answer(listed(6))],
        steps.watch(event("ADDED", pod("a", 7)), then="hang"),
    )
    assert await followed.take(2) == ["SYNCED 5", "ADDED a@7"]
    assert server.requests[3].query["limit"] == "62"
    assert followed.waits == []
    assert followed.health == [(True, "watching pods")]


async def test_deletions_of_an_interrupted_list_are_reported_by_the_next_iteration(server: Any) -> None:
    before = steps.answer(listed(5, pod("a", 3), pod("b", 3), pod("c", 3)))
    after = steps.answer(listed(20, pod("c", 17, "other")))
    server.then(before, steps.refuse(410, "Expired"), after, after, after, steps.watch(then="hang"))
    followed = Followed(server)
    assert (await followed.take(5))[4:] == ["DELETED c@16"]
    assert await followed.take(2) == ["ADDED c@17", "DELETED a@20"]
    assert await followed.take(2) == ["DELETED b@20", "SYNCED 20"]


async def test_an_interrupted_list_is_completed_by_the_next_iteration(server: Any) -> None:
    everything = steps.answer(listed(5, pod("a", 3), pod("b", 4)))
    server.then(everything, everything, steps.watch(then="hang"))
    followed = Followed(server)
    assert await followed.take(1) == ["ADDED a@3"]
    assert await followed.take(2) == ["ADDED b@4", "SYNCED 5"]
