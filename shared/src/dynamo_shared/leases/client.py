"""The part of etcd's API that the platform needs: keys that live with a lease, transactions, a watch as a hint.

It uses the generated stubs of `cslab-etcd3` (`import etcd3`) with grpc.aio, because that package's own client is
synchronous and would need a thread for each watch and keepalive. The asyncio clients lack essential features: aetcd has
no TLS and treats a dead lease as alive, etcd3aio skips events at a reconnect, hangs on a compacted watch and reports a
lease as alive after its time, etcd-client-py has no TLS. The API is small, so these few methods on the stubs cost less
than working around any of them.

Nothing here repeats a request: the caller must read to learn whether a write that timed out was done.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self

from etcd3 import etcdrpc

from dynamo_shared.leases.channel import Channel, EtcdOptions
from dynamo_shared.leases.errors import EtcdUnavailableError

#: The create revision of a key that does not exist.
_ABSENT = 0


class KeyValue(NamedTuple):
    """A key in etcd. `created` is a revision; `lease` is 0 if no lease holds it."""

    key: str
    value: bytes
    lease: int
    created: int


class Snapshot(NamedTuple):
    """All keys under a prefix, at one revision."""

    revision: int
    keys: dict[str, KeyValue]


class Grant(NamedTuple):
    """A new lease; the server may have granted a longer lifetime (seconds) than requested."""

    lease: int
    ttl: float


class EtcdClient:
    """One connection to etcd, shared by all users in a process. Every method may raise EtcdError."""

    def __init__(self, options: EtcdOptions) -> None:
        self._channel = Channel(options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all calls and watches."""
        await self._channel.close()

    async def get(self, key: str) -> KeyValue | None:
        """A key, as a majority of the members has it now."""
        answer = await self._channel.call(etcdrpc.KVStub, "Range", etcdrpc.RangeRequest(key=key.encode()))
        return _key_value(answer.kvs[0]) if answer.kvs else None

    async def read(self, prefix: str) -> Snapshot:
        """All keys under a prefix, as a majority of the members has them now."""
        start = prefix.encode()
        request = etcdrpc.RangeRequest(key=start, range_end=end_of(start))
        answer = await self._channel.call(etcdrpc.KVStub, "Range", request)
        return Snapshot(answer.header.revision, {kv.key: kv for kv in map(_key_value, answer.kvs)})

    async def put(self, key: str, value: bytes, *, lease: int = 0) -> None:
        """Write a key. Raises LeaseNotFoundError if its lease has ended."""
        request = etcdrpc.PutRequest(key=key.encode(), value=value, lease=lease)
        await self._channel.call(etcdrpc.KVStub, "Put", request)

    async def create(
        self, key: str, value: bytes, *, lease: int = 0, present: tuple[str, ...] = (), absent: tuple[str, ...] = ()
    ) -> bool:
        """Write a key only if it does not exist, in one transaction. Returns whether it was written.

        With `present` and `absent`, only if those keys also do, or do not, exist. Raises LeaseNotFoundError if its
        lease has ended.
        """
        conditions = [_exists(other, True) for other in present]
        conditions += [_exists(other, False) for other in (key, *absent)]
        put = etcdrpc.RequestOp(request_put=etcdrpc.PutRequest(key=key.encode(), value=value, lease=lease))
        return await self._transaction(conditions, [put])

    async def create_both(self, first: tuple[str, bytes, int], second: tuple[str, bytes, int]) -> bool:
        """Write two keys (name, value, lease) only if neither exists. Returns whether they were written."""
        pairs = (first, second)
        puts = [
            etcdrpc.RequestOp(request_put=etcdrpc.PutRequest(key=key.encode(), value=value, lease=lease))
            for key, value, lease in pairs
        ]
        return await self._transaction([_exists(key, False) for key, _, _ in pairs], puts)

    async def delete_held(self, key: str, *, created: int, lease: int) -> None:
        """Delete a key, only if it is still the one that was created at that revision under that lease.

        Both are compared, because a server that has lost its data counts revisions from the beginning.
        """
        conditions = [
            etcdrpc.Compare(
                result=etcdrpc.Compare.EQUAL, target=etcdrpc.Compare.CREATE, key=key.encode(), create_revision=created
            ),
            etcdrpc.Compare(result=etcdrpc.Compare.EQUAL, target=etcdrpc.Compare.LEASE, key=key.encode(), lease=lease),
        ]
        delete = etcdrpc.RequestOp(request_delete_range=etcdrpc.DeleteRangeRequest(key=key.encode()))
        await self._transaction(conditions, [delete])

    async def grant(self, ttl: int) -> Grant:
        """A new lease that lives for `ttl` seconds without a keepalive."""
        request = etcdrpc.LeaseGrantRequest(TTL=ttl)
        answer = await self._channel.call(etcdrpc.LeaseStub, "LeaseGrant", request)
        return Grant(answer.ID, float(answer.TTL))

    async def keepalive(self, lease: int, *, timeout: float | None = None) -> float:
        """Renew a lease. Returns its lifetime from now in seconds, 0 if it no longer exists.

        A separate stream for each keepalive costs 0.3 ms and has its own time-out; a permanent stream that hangs
        appears alive.
        """
        request = etcdrpc.LeaseKeepAliveRequest(ID=lease)
        answer = await self._channel.exchange(etcdrpc.LeaseStub, "LeaseKeepAlive", request, timeout=timeout)
        return max(0.0, float(answer.TTL))

    async def revoke(self, lease: int) -> None:
        """End a lease, and delete all its keys. Raises LeaseNotFoundError if it has already ended."""
        await self._channel.call(etcdrpc.LeaseStub, "LeaseRevoke", etcdrpc.LeaseRevokeRequest(ID=lease))

    @asynccontextmanager
    async def watch(self, prefix: str, start: int) -> AsyncIterator[AsyncIterator[int]]:
        """While the block runs: the revision of each batch of changes under a prefix, from revision `start` on.

        Yields 0 once when the watch is established. Raises EtcdUnavailableError when disconnected, or if `start` was
        compacted.
        """
        async with watching(self._channel, prefix, start) as answers:
            yield _revisions(answers)

    async def _transaction(self, conditions: list[Any], operations: list[Any]) -> bool:
        request = etcdrpc.TxnRequest(compare=conditions, success=operations)
        answer = await self._channel.call(etcdrpc.KVStub, "Txn", request)
        return bool(answer.succeeded)


@asynccontextmanager
async def watching(channel: Channel, prefix: str, start: int) -> AsyncIterator[AsyncIterator[Any]]:
    """While the block runs: the answers of a watch of a prefix. Raises the same errors as `EtcdClient.watch`."""
    key = prefix.encode()
    create = etcdrpc.WatchCreateRequest(key=key, range_end=end_of(key), start_revision=start, progress_notify=True)
    request = etcdrpc.WatchRequest(create_request=create)
    async with channel.stream(etcdrpc.WatchStub, "Watch", request) as answers:
        yield _watched(answers)


async def _watched(answers: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for answer in answers:
        if answer.compact_revision:
            raise EtcdUnavailableError(f"revisions before {answer.compact_revision} are compacted")
        if answer.canceled:
            raise EtcdUnavailableError(f"the watch was cancelled: {answer.cancel_reason}")
        yield answer


async def _revisions(answers: AsyncIterator[Any]) -> AsyncIterator[int]:
    async for answer in answers:
        if answer.created:
            yield 0
        elif answer.events:
            yield answer.header.revision


def end_of(prefix: bytes) -> bytes:
    """End (exclusive) of the range of keys that begin with a prefix."""
    for index in range(len(prefix) - 1, -1, -1):
        if prefix[index] < 0xFF:
            return prefix[:index] + bytes([prefix[index] + 1])
    return b"\0"


def _exists(key: str, expected: bool) -> Any:
    return etcdrpc.Compare(
        result=etcdrpc.Compare.GREATER if expected else etcdrpc.Compare.EQUAL,
        target=etcdrpc.Compare.CREATE,
        key=key.encode(),
        create_revision=_ABSENT,
    )


def _key_value(kv: Any) -> KeyValue:
    return KeyValue(kv.key.decode(), kv.value, kv.lease, kv.create_revision)
