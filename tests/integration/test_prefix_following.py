"""Following a prefix of an external etcd: pages, changes, compaction, outages, and a server that lost its data."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from dynamo_devcluster.servers import EtcdServer
from dynamo_shared.aio import Backoff
from dynamo_shared.leases import follow
from dynamo_shared.leases.channel import EtcdOptions
from dynamo_shared.leases.client import EtcdClient
from dynamo_shared.leases.errors import EtcdUnavailableError
from dynamo_shared.leases.follow import LARGEST_VALUE, PrefixFollower
from etcd3 import etcdrpc

from tests.building.tasks import in_background

from .platform import eventually


class Reader:
    """A follower, and the content that results from all its reports."""

    def __init__(self, server: EtcdServer, **options: Any) -> None:
        self.reported: dict[str, bytes] = {}
        self.calls = 0
        self.follower = PrefixFollower(EtcdOptions(endpoints=(server.url,), timeout=1.0), "v1/", self._take, **options)

    def _take(self, changes: Mapping[str, bytes | None]) -> None:
        self.calls += 1
        for key, value in changes.items():
            if value is None:
                self.reported.pop(key, None)
            else:
                self.reported[key] = value

    async def until_has(self, content: dict[str, bytes]) -> None:
        await eventually(
            lambda: self.reported == content and dict(self.follower.content) == content, f"{len(content)} keys"
        )


@asynccontextmanager
async def following(server: EtcdServer, **options: Any) -> AsyncIterator[Reader]:
    reader = Reader(server, **options)
    async with in_background(reader.follower.run()):
        yield reader


@pytest.fixture
async def writer(etcd_server: EtcdServer) -> AsyncIterator[EtcdClient]:
    async with EtcdClient(EtcdOptions(endpoints=(etcd_server.url,))) as client:
        yield client


async def delete(writer: EtcdClient, key: str) -> None:
    kept = await writer.get(key)
    assert kept is not None
    await writer.delete_held(key, created=kept.created, lease=kept.lease)


async def test_pages_then_changes(etcd_server: EtcdServer, writer: EtcdClient) -> None:
    content = {f"v1/instances/{number:04}": str(number).encode() for number in range(100)}
    for key, value in content.items():
        await writer.put(key, value)
    await writer.put("v2/other", b"x")
    async with following(etcd_server, page=7) as reader:
        assert not reader.follower.complete
        await reader.until_has(content)
        assert reader.follower.complete
        await writer.put("v1/new", b"1")
        await writer.put("v1/instances/0001", b"other")
        await delete(writer, "v1/instances/0002")
        changed = content | {"v1/new": b"1", "v1/instances/0001": b"other"}
        del changed["v1/instances/0002"]
        await reader.until_has(changed)


async def test_a_key_is_removed_with_its_lease(etcd_server: EtcdServer, writer: EtcdClient) -> None:
    grant = await writer.grant(60)
    await writer.put("v1/a", b"1", lease=grant.lease)
    async with following(etcd_server) as reader:
        await reader.until_has({"v1/a": b"1"})
        await writer.revoke(grant.lease)
        await reader.until_has({})


async def test_pages_that_exceed_the_message_size_are_reduced(etcd_server: EtcdServer, writer: EtcdClient) -> None:
    large = b"x" * LARGEST_VALUE
    content = {f"v1/{number:02}": large for number in range(40)}  # 10 MiB; a message holds 4
    for key, value in content.items():
        await writer.put(key, value)
    await writer.put("v1/too-large", b"x" * (LARGEST_VALUE + 1))
    async with following(etcd_server) as reader:
        await reader.until_has(content | {"v1/too-large": b""})


async def test_an_outage_keeps_the_content_and_is_followed_by_a_new_reading(
    etcd_server: EtcdServer, writer: EtcdClient
) -> None:
    await writer.put("v1/a", b"1")
    await writer.put("v1/b", b"1")
    async with following(etcd_server) as reader:
        await reader.until_has({"v1/a": b"1", "v1/b": b"1"})
        await etcd_server.kill()
        await eventually(lambda: reader.follower.trouble, "the error is reported")
        assert reader.follower.complete
        assert reader.reported == {"v1/a": b"1", "v1/b": b"1"}
        await etcd_server.start()
        await eventually(lambda: not reader.follower.trouble, "it is back")
        await writer.put("v1/a", b"2")
        await reader.until_has({"v1/a": b"2", "v1/b": b"1"})


async def test_a_server_that_lost_its_data(etcd_server: EtcdServer, writer: EtcdClient) -> None:
    """Its revisions are lower than those already read; a watch from there would be silent for long."""
    for number in range(50):
        await writer.put("v1/a", str(number).encode())
    async with following(etcd_server) as reader:
        await reader.until_has({"v1/a": b"49"})
        await etcd_server.wipe()
        await etcd_server.start()
        await reader.until_has({})
        await writer.put("v1/b", b"1")
        await reader.until_has({"v1/b": b"1"})


async def test_compaction_between_reading_and_watching(
    etcd_server: EtcdServer, writer: EtcdClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch starts at a compacted revision: everything is read again."""
    await writer.put("v1/a", b"1")
    read, readings = PrefixFollower._read, []

    async def late(follower: PrefixFollower, channel: Any) -> Any:
        result = await read(follower, channel)
        readings.append(result[0])
        if len(readings) == 1:
            for number in range(20):
                await writer.put("v1/a", str(number).encode())
            await delete(writer, "v1/a")
            await writer.put("v1/b", b"1")
            revision = (await writer.read("v1/")).revision
            request = etcdrpc.CompactionRequest(revision=revision, physical=True)
            await channel.call(etcdrpc.KVStub, "Compact", request)
        return result

    monkeypatch.setattr(PrefixFollower, "_read", late)
    async with following(etcd_server) as reader:
        await reader.until_has({"v1/b": b"1"})
        assert len(readings) >= 2, "a slow machine may need more"
        await eventually(lambda: not reader.follower.trouble, "no error is left")


async def test_a_watch_that_always_fails_at_once_is_started_less_and_less_often(
    etcd_server: EtcdServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt reads all keys: that was repeated twice a second, without end."""
    failures: list[int] = []

    class Counted(Backoff):
        def next(self) -> float:
            super().next()
            failures.append(self.failures)
            return 0.0

    async def refused(*_: Any) -> None:
        raise EtcdUnavailableError("no streams here")

    monkeypatch.setattr(follow, "Backoff", Counted)
    monkeypatch.setattr(PrefixFollower, "_watch", refused)
    async with following(etcd_server) as reader:
        await eventually(lambda: len(failures) >= 4, "four attempts")
        assert failures[:4] == [1, 2, 3, 4]
        assert reader.follower.trouble == "no streams here"


async def test_everything_is_read_again_periodically(etcd_server: EtcdServer, writer: EtcdClient) -> None:
    async with following(etcd_server, reread_every=0.1) as reader:
        await eventually(lambda: reader.follower.complete, "read")
        for number in range(20):
            await writer.put(f"v1/{number}", b"1")
            await asyncio.sleep(0.02)
        await reader.until_has({f"v1/{number}": b"1" for number in range(20)})
        reported = reader.calls
        await asyncio.sleep(0.5)
        assert reader.calls == reported, "reading the same again reports nothing"


@pytest.mark.parametrize(
    ("bound", "words"), [(("MOST_KEYS", 5), "more than 5 keys"), (("MOST_BYTES", 10), "have more than 10 bytes")]
)
async def test_too_much_content_is_an_error_and_is_not_truncated(
    monkeypatch: pytest.MonkeyPatch, etcd_server: EtcdServer, writer: EtcdClient, bound: tuple[str, int], words: str
) -> None:
    monkeypatch.setattr(follow, *bound)
    for number in range(5):
        await writer.put(f"v1/{number}", b"1")
    async with following(etcd_server) as reader:
        await eventually(lambda: len(reader.reported) == 5, "five keys")
        # Replaced values do not count.
        await writer.put("v1/0", b"12")
        await writer.put("v1/0", b"1")
        await writer.put("v1/more", b"123456")
        await eventually(lambda: words in reader.follower.trouble, "the error is reported")
        await delete(writer, "v1/4")
        # The listener also learns of the change that was too much.
        await reader.until_has({**{f"v1/{number}": b"1" for number in range(4)}, "v1/more": b"123456"})
