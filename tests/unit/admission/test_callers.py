"""Who may send reviews, by the contents of the request."""

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from dynamo_admission.callers import SELF_TEST_HEADER, Callers


@pytest.mark.parametrize(
    ("shown", "answer"), [("own", 200), ("another's", 403), ("nothing", 403), ("", 403), ("not UTF-8", 403)]
)
async def test_a_self_test_proves_itself_by_a_secret_of_its_process(shown: str, answer: int) -> None:
    callers = Callers(required=True)
    secret = {"own": callers.self_test, "another's": Callers().self_test}.get(shown, {SELF_TEST_HEADER: ""})
    value = b"\xff" if shown == "not UTF-8" else secret[SELF_TEST_HEADER].encode()
    line = b"" if shown == "nothing" else SELF_TEST_HEADER.encode() + b": " + value + b"\r\n"

    async def review(request: web.Request) -> web.Response:
        return web.Response(status=403 if callers.refusal(request) else 200)

    app = web.Application()
    app.add_routes([web.get("/", review)])
    async with TestServer(app) as server:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n" + line + b"Connection: close\r\n\r\n")
        status = await reader.readline()
        writer.close()
        await writer.wait_closed()
    assert status.startswith(f"HTTP/1.1 {answer} ".encode())
