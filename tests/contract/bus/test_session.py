"""A lost connection ends its session, whatever the library was doing when it was lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from dynamo_devcluster import NatsServer, Programs
from dynamo_shared.bus.nats.options import NatsOptions
from dynamo_shared.bus.nats.session import NatsSession


async def test_a_connection_lost_with_bytes_to_write_ends_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nats-py writes what is left before it reports the end: an error of that write must not hide the end."""

    async def lost() -> None:
        raise ConnectionResetError("Connection lost")

    async with NatsServer(await Programs().obtain("nats-server"), tmp_path / "nats") as server:
        session = await NatsSession.open(NatsOptions(servers=(server.url,)), server.url)
        client = session.client
        subscription = await client.subscribe("any")
        waits = subscription._wait_for_msgs_task or asyncio.ensure_future(subscription.next_msg(timeout=None))
        await client.flush()
        monkeypatch.setattr(client._transport, "drain", lost)
        client._pending.append(b"PING\r\n")
        client._pending_data_size += 6
        await server.kill()
        async with asyncio.timeout(10):
            await session.ended.wait()
            # What hung on the connection is ended with it.
            await asyncio.wait({waits})
        await session.close()
