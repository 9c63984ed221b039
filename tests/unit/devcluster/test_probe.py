"""Requests to local servers: probes have a short time limit, other requests a long one."""

import asyncio

import pytest
from dynamo_devcluster import probe
from dynamo_devcluster.probe import LocalHttp


async def test_a_request_waits_longer_than_a_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PROBE_WITHIN", 0.01)
    answers = asyncio.Event()

    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await answers.wait()
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nhere")
        writer.close()

    async with await asyncio.start_server(late, "127.0.0.1", 0) as server:
        http = LocalHttp(server.sockets[0].getsockname()[1])
        with pytest.raises(TimeoutError):
            await http.ok("/")
        asked = asyncio.create_task(http.request("GET", "/"))
        answers.set()
        assert await asked == (200, b"here")
