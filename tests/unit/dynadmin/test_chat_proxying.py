"""Chats that are not streamed: an engine works no longer than someone waits for its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web
from dynamo_dynadmin.api import chat
from dynamo_dynadmin.api.chat import Chat
from dynamo_dynadmin.api.completion import Garbled
from dynamo_dynadmin.api.logs import on_simulated_nodes
from dynamo_dynadmin.http.problems import ProblemError
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.kube import Unavailable

from .http_world import ABSENT, GET, connections_to, page_of


class Frontend:
    """A frontend that says one token, and then more without end, or none (`says_more`)."""

    def __init__(self, *, says_more: bool = True) -> None:
        self._says_more = says_more
        self.begun, self.ended = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def service_proxy(self, *_: object, **__: object) -> AsyncIterator[Frontend]:
        try:
            yield self
        finally:
            self.ended.set()

    async def iter_any(self) -> AsyncIterator[bytes]:
        while True:
            yield b'data: {"choices": [{"delta": {"content": "a"}}]}\n'
            self.begun.set()
            await (asyncio.sleep(0) if self._says_more else asyncio.Event().wait())


class NoFrontend:
    """The graph `g`, whose frontend does not answer."""

    async def get(self, *_: object) -> KubeObject:
        return {"spec": {"components": [{"name": "Frontend", "type": "frontend"}]}}

    def service_proxy(self, *_: object, **__: object) -> Any:
        raise Unavailable(503, "ServiceUnavailable", "no route to host")


@pytest.mark.parametrize(
    ("node", "says"),
    [("kwok-0", "run no containers"), ("real", "^the frontend does not answer: no route"), ("", "no route")],
)
async def test_a_chat_with_simulated_pods_says_that_they_run_nothing(node: str, says: str) -> None:
    async def allowed(*_: object) -> bool:
        return True

    fake = SimpleNamespace(obj={"metadata": {"annotations": {"kwok.x-k8s.io/node": "fake"}}})
    nodes = {ObjectKey("", "kwok-0"): fake, ObjectKey("", "real"): SimpleNamespace(obj={"metadata": {}})}
    hub = SimpleNamespace(entries=lambda _: nodes)

    async def known_pods(*_: object) -> AsyncIterator[Any]:
        for name in ("kwok-0", node):
            yield {"spec": {"nodeName": name}}

    details = SimpleNamespace(known_pods=known_pods)
    rights = SimpleNamespace(require=allowed, may=allowed)
    call = SimpleNamespace(namespace="n", name="g", kube=NoFrontend(), answer=None)
    chats = Chat(
        cast("Any", rights), cast("Any", None), 60.0, on_simulated_nodes(cast("Any", hub), cast("Any", details))
    )
    with pytest.raises(ProblemError, match=says):
        await chats.models(cast("Any", call))


@pytest.mark.parametrize("says_more", [True, False], ids=["engine writes", "engine is silent"])
async def test_a_chat_ends_when_its_caller_leaves(says_more: bool) -> None:
    """It went on for minutes, and held one of the chats that its user may have at once."""
    frontend = Frontend(says_more=says_more)

    async def handle(request: web.Request) -> web.StreamResponse:
        call = cast("Any", SimpleNamespace(kube=frontend, request=request))
        return await Chat(ABSENT, ABSENT, 60.0, ABSENT)._whole(call, ObjectKey("n", "s"), b"{}", "m")

    async with connections_to(page_of(handle)) as opened, asyncio.timeout(60):
        _, writer = await opened(GET)
        await frontend.begun.wait()
        writer.close()
        await frontend.ended.wait()


class Dripping(Frontend):
    """A frontend that sends a line of a mebibyte, four bytes at a time, and another one."""

    async def iter_any(self) -> AsyncIterator[bytes]:
        for _ in range((1 << 20) // 4):
            yield b"xxxx"
        yield b"y\n\nza"
        yield b"b"


async def test_a_line_that_comes_in_pieces_is_put_together_once() -> None:
    """It was copied with each piece: a hundred gigabytes for one of a mebibyte."""
    call = cast("Any", SimpleNamespace(kube=Dripping()))
    lines = [line async for line in chat._lines(call, ObjectKey("n", "s"), b"")]
    assert [len(line) for line in lines] == [(1 << 20) + 1, 0, 3]
    assert lines[2] == b"zab"


@pytest.mark.parametrize("limit", ["LARGEST_ANSWER", "LONGEST_LINE"])
async def test_an_answer_or_line_that_is_too_long_is_refused(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, limit, 4096)
    call = cast("Any", SimpleNamespace(kube=Dripping()))
    with pytest.raises(Garbled, match="too long"):
        _ = [line async for line in chat._lines(call, ObjectKey("n", "s"), b"")]
