"""The requests of an etcd watch, and errors that prevent a call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc.aio
import pytest
from dynamo_shared.leases import client as etcd_client
from dynamo_shared.leases import follow, view
from dynamo_shared.leases.channel import Channel, EtcdOptions
from dynamo_shared.leases.client import EtcdClient
from dynamo_shared.leases.errors import CertificateFileError, EtcdUnavailableError
from dynamo_shared.leases.follow import PrefixFollower
from dynamo_shared.leases.view import PrefixView
from etcd3 import etcdrpc

from tests.building.tasks import in_background
from tests.building.waiting import turns, until


class Watching:
    """A stub whose watch ends at once."""

    def __init__(self, _: object) -> None:
        self.request = None

    def Watch(self, *, metadata: tuple[tuple[str, str], ...]) -> Any:  # noqa: N802 - etcd's name
        self.metadata = metadata
        return self

    async def write(self, request: object) -> None:
        assert (request, self.metadata) == ("all", (("hasleader", "true"),))

    async def read(self) -> object:
        return grpc.aio.EOF

    def cancel(self) -> None:
        """No call is in progress."""


async def test_a_watch_ends_when_its_member_has_lost_the_leader() -> None:
    """A member that was cut off from the others kept its watches open and sent nothing."""
    channel = Channel(EtcdOptions(endpoints=("http://127.0.0.1:1",)))
    try:
        async with channel.stream(Watching, "Watch", "all") as answers:
            with pytest.raises(EtcdUnavailableError, match="the server ended"):
                _ = [answer async for answer in answers]
    finally:
        await channel.close()


class Compacting:
    """A connection to an etcd that has compacted what each watch asks for."""

    def __init__(self, _: object) -> None:
        self.watches = 0

    async def call(self, *_: object) -> Any:
        await asyncio.sleep(0)
        return SimpleNamespace(header=SimpleNamespace(revision=1), kvs=[], more=False)

    @asynccontextmanager
    async def stream(self, *_: object) -> AsyncIterator[AsyncIterator[Any]]:
        self.watches += 1
        yield self._answers()

    async def _answers(self) -> AsyncIterator[Any]:
        yield SimpleNamespace(compact_revision=7, canceled=True, cancel_reason="")

    async def close(self) -> None:
        """No call is in progress."""


@pytest.mark.parametrize("reader", [view, follow])
async def test_a_watch_that_is_always_compacted_begins_again_after_a_pause(
    reader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It began again at once: an etcd that compacts all the time got requests as fast as it answered."""
    options, channel = EtcdOptions(endpoints=("http://127.0.0.1:1",)), Compacting(None)
    monkeypatch.setattr(reader, "RECONNECT_PAUSE", 3600.0)
    monkeypatch.setattr(follow, "LONGEST_PAUSE", 3600.0)
    monkeypatch.setattr(follow, "Channel", lambda _: channel)
    monkeypatch.setattr(etcd_client, "Channel", lambda _: channel)
    client = EtcdClient(options)
    work = PrefixView(client, "/p")._watch if reader is view else PrefixFollower(options, "/p", lambda _: None).run
    async with in_background(work()):
        await until(lambda: channel.watches)
        await turns()
        assert channel.watches == 1


class Full:
    """A stub whose requests the member refuses for lack of resources."""

    words = ""

    def __init__(self, _: object) -> None:
        """Every connection gets the same answer."""

    async def Put(self, _: object, **__: object) -> None:  # noqa: N802 - etcd's name
        nothing = grpc.aio.Metadata()
        raise grpc.aio.AioRpcError(grpc.StatusCode.RESOURCE_EXHAUSTED, nothing, nothing, self.words)


@pytest.mark.parametrize(
    ("words", "member"),
    [
        ("etcdserver: mvcc: database space exceeded", 1),
        ("CLIENT: Received message larger than max (5242880 vs. 4194304)", 1),
        ("etcdserver: too many requests", 2),
    ],
)
async def test_another_member_is_asked_only_if_it_may_answer_otherwise(words: str, member: int) -> None:
    """Each write that a full etcd refused opened another connection."""
    channel, full = Channel(EtcdOptions(endpoints=("http://127.0.0.1:1", "http://127.0.0.1:2"))), Full
    full.words = words
    try:
        with pytest.raises(EtcdUnavailableError, match=words.partition(" (")[0]):
            await channel.call(full, "Put", "all")
        assert channel.endpoint == f"http://127.0.0.1:{member}"
    finally:
        await channel.close()


async def test_a_slow_connection_is_awaited_as_long_as_a_response() -> None:
    """A member that needed more than 0.1 s to begin (another region, TLS on a busy node) was never reached."""
    # Since Python 3.13, a writer that nothing refers to closes its connection.
    writers: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, writer: writers.append(writer), "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    channel = Channel(EtcdOptions(endpoints=(f"http://127.0.0.1:{port}",)))
    try:
        with pytest.raises(EtcdUnavailableError, match="Deadline Exceeded"):
            await channel.call(etcdrpc.KVStub, "Range", etcdrpc.RangeRequest(key=b"a"), timeout=0.5)
    finally:
        await channel.close()
        silent.close()
        for writer in writers:
            writer.close()


async def test_an_invalid_password_is_an_etcd_error_and_is_not_repeated(tmp_path: Path) -> None:
    """It ended all tasks that follow etcd, and the next attempt as well."""
    file = tmp_path / "password"
    file.write_bytes(b"secret\xff")
    channel = Channel(EtcdOptions(endpoints=("http://127.0.0.1:1",), user="root", password=file.read_text))
    try:
        with pytest.raises(CertificateFileError, match="root is not UTF-8") as caught:
            await channel.call(Watching, "Watch", "all")
        assert caught.value.__cause__ is None
    finally:
        await channel.close()
