"""NATS with TLS, client certificates, passwords and tokens: correct ones work, and wrong ones give a clear error."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from dynamo_devcluster import CertificateAuthority, NatsServer, NatsServerOptions, Programs, ServerTls
from dynamo_shared.bus import BusHealth, NatsBus, streams
from dynamo_shared.bus.errors import BusUnavailableError

from tests.building.waiting import until

SUBJECT = "dynamo.evt.v1.c.ns.kind.name.ready"


@asynccontextmanager
async def server(folder: Path, **options: Any) -> AsyncIterator[NatsServer]:
    async with NatsServer(
        await Programs().obtain("nats-server"), folder / "nats", NatsServerOptions(**options)
    ) as running:
        yield running


async def works(url: str, **settings: Any) -> bool:
    """Whether the server accepts this client: its first answer decides."""
    bus = await NatsBus.connect(servers=(url,), wait=0, connect_timeout=60, **settings)
    try:
        await until(lambda: bus.trouble != "not connected yet", within=120)
        if bus.health is not BusHealth.CONNECTED:
            assert "hush" not in bus.trouble
            return False
        async with asyncio.timeout(60):
            while True:
                # A busy machine may take longer to answer than a publish waits.
                with contextlib.suppress(BusUnavailableError):
                    await bus.declare(streams.EVENTS)
                    await bus.publish(SUBJECT, b"x")
                    return True
    finally:
        await bus.close()


async def test_user_and_password(tmp_path: Path) -> None:
    async with server(tmp_path, user="dynamo", password="hush") as nats:
        assert await works(nats.url, user="dynamo", password="hush")
        assert not await works(nats.url, user="dynamo", password="hush-hush")
        assert not await works(nats.url)


async def test_token(tmp_path: Path) -> None:
    async with server(tmp_path, token="hush") as nats:
        assert await works(nats.url, token="hush")
        assert not await works(nats.url, token="hush-hush")


async def test_nkey(tmp_path: Path) -> None:
    # Keys of the documentation of NATS, and one that the server does not know.
    (known := tmp_path / "known").write_text("SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY\n")
    (unknown := tmp_path / "unknown").write_text("SUAAAAICAMCAKBQHBAEQUCYMBUHA6EARCIJRIFIWC4MBSGQ3DQOR4H776Y\n")
    user = {"nkey": "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"}
    async with server(tmp_path, authorization={"users": [user]}) as nats:
        assert await works(nats.url, nkey_seed_file=known)
        assert not await works(nats.url, nkey_seed_file=unknown)


async def test_tls_with_client_certificates(tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path / "ca")
    other = CertificateAuthority(tmp_path / "other", name="other")
    client, stranger = authority.client("dynamo"), other.client("stranger")
    tls = ServerTls(authority.certificate, authority.server("nats"), client)
    async with server(tmp_path, tls=tls) as nats:
        assert await works(nats.url, ca_file=authority.certificate, cert_file=client.certificate, key_file=client.key)
        # No certificate, one of another authority, and an untrusted server.
        assert not await works(nats.url, ca_file=authority.certificate)
        assert not await works(
            nats.url, ca_file=authority.certificate, cert_file=stranger.certificate, key_file=stranger.key
        )
        assert not await works(nats.url, ca_file=other.certificate, cert_file=client.certificate, key_file=client.key)


async def test_the_right_password_after_a_wrong_one_needs_no_restart(tmp_path: Path) -> None:
    """After a refusal the client keeps trying: the server's configuration may have been wrong."""
    async with server(tmp_path, user="dynamo", password="hush") as nats:
        bus = await NatsBus.connect(servers=(nats.url,), wait=1.0, user="dynamo", password="later")
        assert bus.health is BusHealth.DEGRADED
        await nats.stop()
        nats.options = NatsServerOptions(port=nats.port, user="dynamo", password="later")
        await nats.start()
        await asyncio.wait_for(bus.wait_connected(), 60)
        await bus.close()


@pytest.mark.parametrize("first", [True, False])
async def test_one_of_several_servers_is_enough(tmp_path: Path, first: bool) -> None:
    async with server(tmp_path) as nats:
        dead = "nats://127.0.0.1:1"
        servers = (dead, nats.url) if first else (nats.url, dead)
        bus = await NatsBus.connect(servers=servers, wait=60)
        assert bus.health is BusHealth.CONNECTED
        await bus.close()


@pytest.mark.parametrize("info", [{}, {"tls_required": False}, {"tls_available": False, "auth_required": True}])
async def test_no_password_is_sent_when_tls_is_required_and_the_server_offers_none(info: dict[str, Any]) -> None:
    """An attacker's server claims that it needs no TLS; the client must not send its password there."""
    received = bytearray()
    gone = asyncio.Event()

    async def stranger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"INFO " + json.dumps({"version": "2.12.1", "max_payload": 1 << 20, **info}).encode() + b"\r\n")
        while chunk := await reader.read(1024):
            received.extend(chunk)
        writer.close()
        gone.set()

    fake = await asyncio.start_server(stranger, "127.0.0.1", 0)
    async with fake:
        port = fake.sockets[0].getsockname()[1]
        bus = await NatsBus.connect(servers=(f"tls://127.0.0.1:{port}",), wait=0.5, user="dynamo", password="hush")
        assert bus.health is BusHealth.DEGRADED
        await until(lambda: "TLS" in bus.trouble)
        await bus.close()
        await asyncio.wait_for(gone.wait(), 60)
    assert bytes(received) == b""
