"""Kubernetes Events of an object, among those of a namespace."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest
from aiohttp import web
from dynamo_dynadmin.api import events, pages
from dynamo_dynadmin.api.events import EventReader
from dynamo_dynadmin.api.family import descendants
from dynamo_dynadmin.api.kinds import DEPLOYMENTS
from dynamo_dynadmin.http.call import Call
from dynamo_shared.kube import ResponseTooLarge


def event(number: int, name: str) -> dict[str, Any]:
    metadata = {"name": f"{name}.{number}", "uid": f"{name}.{number}", "resourceVersion": str(number)}
    regarding = {"kind": "DynamoGraphDeployment", "name": name}
    return {"metadata": metadata, "regarding": regarding, "eventTime": f"2026-01-02T03:04:{number:02}.000000Z"}


class Kube:
    """An API server, which lists Events in order of their names."""

    def __init__(self, items: list[dict[str, Any]], *, fit_into_a_page: int = 1000) -> None:
        self._items = items
        self._fit = fit_into_a_page
        self.pages = 0

    async def list_page(self, *_: Any, limit: int, continue_: str = "", most: int, **_selected: Any) -> dict[str, Any]:
        if limit > self._fit:
            raise ResponseTooLarge(200, "ResponseTooLarge", f"the answer is larger than {most} bytes")
        self.pages += 1
        first = int(continue_ or 0)
        end = first + limit
        rest = {"continue": str(end)} if end < len(self._items) else {}
        return {"metadata": {"resourceVersion": "9", **rest}, "items": self._items[first:end]}


class Details:
    """One graph, and the pods that it may own."""

    pods: ClassVar[list[dict[str, Any]]] = []

    async def object(self, *_: Any) -> dict[str, Any]:
        return {"metadata": {"name": "shop", "uid": "u"}}

    async def descendants(self, _call: Any, _kind: Any, root: dict[str, Any]) -> set[tuple[str, str]]:
        return descendants({**root, "kind": "DynamoGraphDeployment"}, self.pods)


async def listed(kube: Kube) -> list[str]:
    def answer(content: Any) -> web.Response:
        return web.json_response(content)

    call = SimpleNamespace(
        kube=kube,
        namespace="n",
        name="shop",
        flag=lambda _: False,
        number=lambda _, otherwise: otherwise,
        answer=answer,
    )
    given = await EventReader(cast("Any", Details()), cast("Any", None)).events(cast("Call", call), DEPLOYMENTS)
    return [each["id"] for each in json.loads(cast("Any", given).body)["items"]]


async def test_events_of_others_do_not_hide_those_of_the_object(monkeypatch: Any) -> None:
    """The API server lists by name: a busy object with an early one filled the page that was read."""
    monkeypatch.setattr(pages, "READ", 5)
    kube = Kube([*(event(number, "busy") for number in range(12)), event(20, "shop"), event(21, "shop")])
    assert await listed(kube) == ["shop.21", "shop.20"]
    assert kube.pages == 3


async def test_a_limited_number_of_pages_of_events_is_read(monkeypatch: Any) -> None:
    monkeypatch.setattr(pages, "READ", 1)
    kube = Kube([event(number, "shop") for number in range(50)])
    assert len(await listed(kube)) == kube.pages == events.PAGES


async def test_large_events_are_read_in_smaller_pages(monkeypatch: Any) -> None:
    """Two thousand Events with a megabyte of annotations each were requested as one page."""
    monkeypatch.setattr(pages, "READ", 100)
    kube = Kube([event(number, "shop") for number in range(10)], fit_into_a_page=4)
    assert len(await listed(kube)) == 10
    assert kube.pages == 3


def test_a_row_is_small_whatever_the_event_has() -> None:
    """Half a thousand rows wait for their objects: Events of a megabyte took half a gigabyte for each stream."""
    long = "x" * 1_000_000
    made = event(1, long)
    made |= {"note": long, "reason": long, "type": long, "reportingController": long, "x": long}
    made["metadata"]["annotations"] = {"a": long}
    assert len(json.dumps(events.row(made))) < 30_000


async def test_watches_that_end_at_once_are_repeated_after_a_pause() -> None:
    watches: list[str] = []

    class Nothing:
        async def iter_any(self) -> AsyncIterator[bytes]:
            await asyncio.sleep(0)
            return
            yield b""

    @asynccontextmanager
    async def stream(_: Any, __: str, query: str, **___: Any) -> AsyncIterator[Nothing]:
        watches.append(query)
        yield Nothing()

    call = SimpleNamespace(kube=SimpleNamespace(stream=stream), namespace="n")
    follower = events._EventFollower(*cast("Any", (None, call, None, None)))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await anext(follower._watched("9"))
    assert len(watches) == 1


async def test_a_stream_remembers_a_limited_number_of_deleted_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph may replace its pods for months."""
    monkeypatch.setattr(events, "_FORMER", 1)
    monkeypatch.setattr(events, "_FAMILY_EVERY", 0.0)

    class Owning(Details):
        pass

    call = SimpleNamespace(namespace="n", name="shop")
    follower = events._EventFollower(*cast("Any", (Owning(), call, DEPLOYMENTS, None)))
    for name in "abc":
        Owning.pods = [{"kind": "Pod", "metadata": {"name": name, "uid": name, "ownerReferences": [{"uid": "u"}]}}]
        await follower._refresh()
    assert follower._family == {("DynamoGraphDeployment", "shop"), ("Pod", "c")}


async def test_no_id_is_beyond_an_event_that_waits_for_its_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that broke off went on after the id, and so without the events that waited."""
    sent: list[tuple[str, str]] = []
    moment = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: moment)

    class Open:
        async def send(self, name: str, data: dict[str, Any], identity: str = "") -> None:
            sent.append((data.get("id", name), identity))

    class Owning(Details):
        pass

    def about(number: int, pod: str) -> dict[str, Any]:
        return {**event(number, pod), "regarding": {"kind": "Pod", "name": pod}}

    call = SimpleNamespace(namespace="n", name="shop")
    follower = events._EventFollower(*cast("Any", (Owning(), call, DEPLOYMENTS, Open())))
    follower._last = "9"
    for each in (event(10, "shop"), about(11, "new"), about(12, "new"), about(13, "other"), event(14, "shop")):
        await follower._take(each)
    moment = 1.0
    owner = {"uid": "u"}
    Owning.pods = [{"kind": "Pod", "metadata": {"name": "new", "uid": "p", "ownerReferences": [owner]}}]
    await follower._release()
    moment = 10.0
    await follower._release()
    await follower._take(event(15, "shop"))
    assert sent == [("shop.10", "10"), ("shop.14", "10"), ("new.11", ""), ("new.12", "12"), ("shop.15", "15")]
