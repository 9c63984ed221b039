"""A REST API of a few routes, and the API servers that its handlers ask."""

import asyncio
import dataclasses
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, cast

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.connection import HttpConnection, SlowReaders
from dynamo_dynadmin.http.routes import JSON, JSON_PATCH, MERGE_PATCH, YAML, ResponseSpec, Route
from dynamo_dynadmin.http.server import HttpServer
from dynamo_dynadmin.http.streaming import Streams
from dynamo_dynadmin.identity.who import Caller
from dynamo_dynadmin.metrics import DynadminMetrics
from dynamo_shared.kube import Identity
from dynamo_shared.runtime import endpoints
from dynamo_shared.runtime.settings.dynadmin import Dynadmin
from dynamo_shared.runtime.tls import self_signed_tls
from prometheus_client import CollectorRegistry

ABSENT = cast("Any", None)
PAGE = "https://portal.test"
WITHIN = 5.0
#: Headers of a caller whose token the API server knows.
KNOWN = {"Authorization": "Bearer mine"}
GET = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
Handle = Callable[[Call], Awaitable[web.StreamResponse]]
Client = TestClient[web.Request, web.Application]
Opens = Callable[..., Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


def http_server(
    routes: Iterable[Route],
    kube: Any = ABSENT,
    sessions: Any = ABSENT,
    registry: CollectorRegistry | None = None,
    **settings: Any,
) -> HttpServer:
    """A server of these routes; `kube` is also who says whose a token is."""
    metrics = DynadminMetrics(registry or CollectorRegistry())
    return HttpServer(routes, kube, tokens=kube, sessions=sessions, metrics=metrics, settings=Dynadmin(**settings))


@asynccontextmanager
async def server_of(
    routes: Iterable[Route], kube: Any = ABSENT, sessions: Any = ABSENT, **settings: Any
) -> AsyncIterator[Client]:
    """A client of such a server."""
    app = http_server(routes, kube, sessions, **settings).app()
    async with asyncio.timeout(WITHIN), TestClient(TestServer(app)) as client:
        yield client


def page_of(handle: Any) -> web.Application:
    """One page, without the rest of the REST API."""
    app = web.Application()
    app.router.add_get("/", handle)
    return app


@asynccontextmanager
async def connections_to(
    app: web.Application,
    kind: type[HttpConnection] = HttpConnection,
    *,
    refuse: Any = ABSENT,
    most: int = 1000,
    tls: bool = False,
    finish_within: float = 2.0,
) -> AsyncIterator[Opens]:
    """What opens a connection of this kind to an application, and sends something. There may be `most` of them."""
    own, trusting = (self_signed_tls(), ssl.create_default_context()) if tls else (None, None)
    if trusting is not None:
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    made = partial(kind, refuse, SlowReaders())
    async with endpoints.serving(app, "127.0.0.1", 0, own, made, most=most, finish_within=finish_within) as port:

        async def opened(sent: bytes, address: str = "127.0.0.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting, local_addr=(address, 0))
            writer.write(sent)
            return reader, writer

        yield opened


def streams_of(access: Any = ABSENT, *, most: int = 1, recheck: float = 60) -> Streams:
    """Streams, of which there may be `most`."""
    metrics = DynadminMetrics(CollectorRegistry())
    return Streams(access, metrics, total=most, of_a_user=most, heartbeat=1, recheck=recheck)


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
