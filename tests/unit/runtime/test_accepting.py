"""A server has a limited number of open connections, and a client with many loses its own."""

import asyncio
import ssl
from contextlib import AsyncExitStack, suppress

import pytest
from aiohttp import web
from dynamo_shared.runtime.endpoints import serving
from dynamo_shared.runtime.tls import self_signed_tls

HOST = "127.0.0.1"
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
async def test_the_client_with_most_connections_loses_its_oldest(tls: bool) -> None:
    """A pod that opens connections without end takes neither the memory of a service nor the places of others."""
    async with AsyncExitStack() as stack:
        serving_tls = self_signed_tls() if tls else None
        port = await stack.enter_async_context(serving(web.Application(), HOST, 0, serving_tls, most=3))

        async def connect(address: str, *, shakes_hands: bool = True) -> Client:
            context = trusting() if tls and shakes_hands else None
            client = await asyncio.open_connection(HOST, port, ssl=context, local_addr=(address, 0))
            stack.callback(client[1].close)
            return client

        async def answered(client: Client) -> None:
            client[1].write(REQUEST)
            await client[0].readuntil(b"HTTP/1.1 404 ")

        async def is_lost(client: Client) -> bool:
            with suppress(ConnectionError):
                return await client[0].read() == b""
            return True

        quiet = await connect("127.0.0.2")
        await answered(quiet)
        many = [await connect("127.0.0.3", shakes_hands=False) for _ in range(2)]
        many += [await connect("127.0.0.3") for _ in range(2)]
        for lost in many[:2]:
            assert await is_lost(lost)
        for kept in (quiet, *many[2:]):
            await answered(kept)


async def test_a_connection_with_a_request_in_progress_is_kept() -> None:
    """An API server with many idle connections could lose the one whose review was in progress."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        begun.set()
        await go_on.wait()
        return web.Response()

    app = web.Application()
    app.router.add_get("/slow", slow)
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(app, HOST, 0, most=2))

        async def connect() -> Client:
            client = await asyncio.open_connection(HOST, port)
            stack.callback(client[1].close)
            return client

        busy, idle = await connect(), await connect()
        busy[1].write(REQUEST.replace(b"/ ", b"/slow "))
        await begun.wait()
        idle[1].write(REQUEST)
        await idle[0].readuntil(b"404: Not Found")
        await connect()
        assert await idle[0].read() == b""
        go_on.set()
        assert await busy[0].readuntil(b"HTTP/1.1 200 ")


async def test_a_connection_whose_request_is_incomplete_can_be_lost() -> None:
    """A body that never arrives completely must not take the place of a request in progress."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def read(request: web.Request) -> web.Response:
        await request.read()
        begun.set()
        await go_on.wait()
        return web.Response()

    app = web.Application()
    app.router.add_post("/", read)
    body = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(app, HOST, 0, most=2))

        async def connect() -> Client:
            client = await asyncio.open_connection(HOST, port)
            stack.callback(client[1].close)
            client[1].write(body)
            await client[0].readuntil(b"HTTP/1.1 100 Continue")
            return client

        busy, incomplete = await connect(), await connect()
        busy[1].write(b"ab")
        incomplete[1].write(b"a")
        await begun.wait()
        await connect()
        go_on.set()
        assert await busy[0].readuntil(b"HTTP/1.1 200 ")
        assert not (await incomplete[0].read()).strip()


async def test_a_closed_connection_does_not_count() -> None:
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(web.Application(), HOST, 0, most=1))
        for _ in range(3):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(REQUEST.replace(b"Host", b"Connection: close\r\nHost"))
            assert (await reader.read()).startswith(b"HTTP/1.1 404 ")
            writer.close()
