"""The loss of a connection ends its session, whatever nats-py was doing at that time."""

import asyncio
from pathlib import Path

import pytest
from dynamo_devcluster import NatsServer, Programs
from dynamo_shared.aio import Backoff
from dynamo_shared.bus import BusHealth, NatsBus
from dynamo_shared.bus.errors import BusUnavailableError
from dynamo_shared.bus.nats import keeper
from dynamo_shared.bus.nats.options import NatsOptions
from dynamo_shared.bus.nats.session import NatsSession
from nats.aio.client import Client
from nats.aio.transport import TcpTransport


async def test_a_connection_lost_with_bytes_to_write_ends_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nats-py writes buffered data before it reports the loss: an error of that write must not hide the loss."""

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
        async with asyncio.timeout(30):
            await session.ended.wait()
            # Tasks of the connection are cancelled with it.
            await asyncio.wait({waits})
        await session.close()


@pytest.mark.parametrize("flushes", [True, False], ids=["flusher", "no flusher"])
async def test_a_connection_closed_with_bytes_to_write_ends_the_session(flushes: bool, tmp_path: Path) -> None:
    """The event loop refuses to write: nats-py must still report the loss."""
    async with NatsServer(await Programs().obtain("nats-server"), tmp_path / "nats") as server:
        session = await NatsSession.open(NatsOptions(servers=(server.url,)), server.url)
        client = session.client
        subscription = await client.subscribe("any")
        waits = subscription._wait_for_msgs_task or asyncio.ensure_future(subscription.next_msg(timeout=None))
        flusher = client._flusher_task
        assert flusher is not None
        if not flushes:
            flusher.cancel()
            await asyncio.wait({flusher})
        transport = client._transport
        assert isinstance(transport, TcpTransport)
        assert transport._io_writer is not None
        transport._io_writer.transport.abort()
        client._pending.append(b"PING\r\n")
        client._pending_data_size += 6
        try:
            acknowledged = await session.send("any", b"", None, 60.0)
        except BusUnavailableError:
            acknowledged = None
        async with asyncio.timeout(30):
            await session.ended.wait()
            # Tasks of the connection are cancelled with it.
            await asyncio.wait({waits})
            await session.close()
        assert acknowledged is None or isinstance(acknowledged.exception(), BusUnavailableError)
        with pytest.raises(BusUnavailableError):
            await session.send("any", b"", None, 60.0)


async def test_a_bus_whose_sessions_end_at_once_connects_less_and_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[int] = []
    enough = asyncio.Event()

    class Counted(Backoff):
        def next(self) -> float:
            super().next()
            failures.append(self.failures)
            return 0.0

    connections = 0

    def refused(health: BusHealth) -> None:
        nonlocal connections
        if health is BusHealth.CONNECTED:
            connections += 1
            if connections == 4:
                enough.set()
            bus._keeper.session().client._transport.write(b"nonsense\r\n")  # type: ignore[union-attr]

    async with NatsServer(await Programs().obtain("nats-server"), tmp_path / "nats") as server:
        monkeypatch.setattr(keeper, "Backoff", Counted)
        bus = await NatsBus.connect(servers=(server.url,), wait=60)
        bus.on_health(refused)
        refused(bus.health)
        async with asyncio.timeout(60):
            await enough.wait()
        await bus.close()
    assert failures[:3] == [1, 2, 3]


@pytest.mark.parametrize("step", ["connect", "close"])
async def test_a_connecting_bus_can_be_closed_even_if_the_library_drops_the_cancellation(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nats-py drops a cancellation while it flushes or closes: attempts went on, and `close` waited for them."""
    began = asyncio.Event()

    async def drops(*_: object, **__: object) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionRefusedError("no one listens") from None

    async def fails(*_: object, **__: object) -> None:
        raise ConnectionRefusedError("no one listens")

    monkeypatch.setattr(Client, "connect", drops if step == "connect" else fails)
    monkeypatch.setattr(Client, "close", drops if step == "close" else fails)
    bus = await NatsBus.connect(servers=("nats://127.0.0.1:1",), wait=0.01)
    await began.wait()
    async with asyncio.timeout(30):
        await bus.close()
