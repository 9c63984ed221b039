"""A REST API of a few routes, and the API servers that its handlers ask."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, cast

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.routes import JSON, JSON_PATCH, MERGE_PATCH, YAML, ResponseSpec, Route
from dynamo_dynadmin.http.server import HttpServer
from dynamo_dynadmin.identity.who import Caller
from dynamo_dynadmin.metrics import DynadminMetrics
from dynamo_shared.kube import Identity
from dynamo_shared.runtime.settings.dynadmin import Dynadmin
from prometheus_client import CollectorRegistry

ABSENT = cast("Any", None)
PAGE = "https://portal.test"
WITHIN = 5.0
Handle = Callable[[Call], Awaitable[web.StreamResponse]]
Client = TestClient[web.Request, web.Application]


@asynccontextmanager
async def server_of(
    routes: Iterable[Route], kube: Any = ABSENT, sessions: Any = ABSENT, **settings: Any
) -> AsyncIterator[Client]:
    """A server of these routes; `kube` is also who says whose a token is."""
    metrics = DynadminMetrics(CollectorRegistry())
    server = HttpServer(routes, kube, tokens=kube, sessions=sessions, metrics=metrics, settings=Dynadmin(**settings))
    async with asyncio.timeout(WITHIN), TestClient(TestServer(server.app())) as client:
        yield client


def route_of(handle: Handle, method: str, path: str, *, public: bool) -> Route:
    return Route(
        method=method,
        path=path,
        operation="x",
        summary="",
        tag="",
        handle=handle,
        answers={200: ResponseSpec("")},
        body={JSON: "Any", YAML: "Any", MERGE_PATCH: "Any", JSON_PATCH: "Any"},
        public=public,
    )


def serving(
    handle: Handle, method: str = "POST", path: str = "/x", **settings: Any
) -> AbstractAsyncContextManager[Client]:
    """One public route."""
    return server_of([route_of(handle, method, path, public=True)], **settings)


def asking(kube: Any, handle: Callable[..., Awaitable[web.StreamResponse]], *arguments: Any) -> Handle:
    """A handler for which this is the API server."""

    async def handler(call: Call) -> web.StreamResponse:
        return await handle(dataclasses.replace(call, kube=kube), *arguments)

    return handler


async def echo(call: Call) -> web.StreamResponse:
    return call.answer(await call.body())


class Managed:
    """An API server with one graph, which Argo CD applies."""

    async def get(self, *_: Any) -> dict[str, Any]:
        annotations = {"argocd.argoproj.io/tracking-id": "shop:x"}
        return {"metadata": {"name": "a", "namespace": "n", "resourceVersion": "1", "annotations": annotations}}


class Named:
    """Whose token it is, the token says; also a client with the rights of all."""

    def remembered(self, _: str) -> Caller | None:
        return None

    def is_of_cluster(self, _: str) -> bool:
        return True

    async def caller(self, token: str) -> Caller:
        return Caller(Identity(token))

    def for_identity(self, *_: Any, **__: Any) -> Any:
        return self
