"""A replica that cannot reach the API server gives way to one that can, and only then. The clock is manual."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from dynamo_shared.leases.client import KeyValue, Snapshot
from dynamo_shared.leases.errors import EtcdUnavailableError
from dynamo_shared.leases.reach import SUSPEND_AFTER, Reach
from dynamo_shared.leases.session import Session


class Etcd:
    """Stored keys by name."""

    def __init__(self) -> None:
        self.keys: dict[str, KeyValue] = {}
        self.away = False
        self.puts = 0

    async def put(self, key: str, value: bytes, *, lease: int) -> None:
        if self.away:
            raise EtcdUnavailableError("refused")
        self.puts += 1
        self.keys[key] = KeyValue(key, value, lease, 1)

    async def read(self, prefix: str) -> Snapshot:
        if self.away:
            raise EtcdUnavailableError("refused")
        return Snapshot(1, {key: kv for key, kv in self.keys.items() if key.startswith(prefix)})


class HeldLease:
    """A lease that is held until it is given up."""

    def __init__(self, number: int) -> None:
        self.id, self._number = number, number

    def suspend(self, why: str) -> None:
        assert "takes over" in why
        self.id = 0

    def resume(self) -> None:
        self.id = self._number


class World:
    """Replicas `a` and `b` of the watcher, and one of another service. A test may cut each off from the API server."""

    def __init__(self) -> None:
        self.now = 0.0
        self.etcd = Etcd()
        self.reaches = {"a": True, "b": True, "other": True}
        self.leases = {name: HeldLease(number) for number, name in enumerate(self.reaches, 1)}
        self.parts = {name: self._replica(name) for name in self.reaches}

    def _replica(self, name: str) -> Reach:
        session = SimpleNamespace(client=self.etcd, lease=self.leases[name], prefix="/p", replica=name)
        kind = "scaler" if name == "other" else "watcher"
        return Reach(cast("Session", session), kind, lambda: self._probe(name), clock=lambda: self.now)

    async def _probe(self, name: str) -> bool:
        return self.reaches[name]

    async def after(self, seconds: float, **reaches: bool) -> set[str]:
        """Let that time pass and all replicas probe. Returns those that hold a lease."""
        self.now += seconds
        self.reaches |= reaches
        for each in self.parts.values():
            await each.check()
        return {name for name, lease in self.leases.items() if lease.id}


async def test_a_replica_that_alone_cannot_reach_the_server_gives_way_until_it_can() -> None:
    world = World()
    assert await world.after(0) == {"a", "b", "other"}
    assert await world.after(10, a=False) == {"a", "b", "other"}
    assert await world.after(SUSPEND_AFTER - 1) == {"a", "b", "other"}, "it may be starting again"
    assert await world.after(1) == {"b", "other"}
    assert await world.after(100) == {"b", "other"}
    assert await world.after(10, a=True) == {"a", "b", "other"}
    assert world.etcd.puts == 3 + 1 + 1, "of each what changed"


async def test_if_no_replica_of_the_kind_reaches_the_server_each_keeps_its_lease() -> None:
    world = World()
    for _ in range(20):
        assert await world.after(10, a=False, b=False) == {"a", "b", "other"}


async def test_the_server_is_probed_once_more_before_giving_way(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    await world.after(0, a=False)
    answers = iter([False, True])

    async def probe() -> bool:
        return next(answers)

    monkeypatch.setattr(world.parts["a"], "_probe", probe)
    world.now += SUSPEND_AFTER
    await world.parts["a"].check()
    assert world.leases["a"].id


async def test_a_deleted_replica_and_one_of_an_earlier_release_take_nothing_over() -> None:
    world = World()
    await world.after(0)
    del world.etcd.keys["/p/reach/watcher/b"]
    del world.parts["b"]
    assert "a" in await world.after(2 * SUSPEND_AFTER, a=False)
    assert "a" in await world.after(2 * SUSPEND_AFTER)


async def test_without_etcd_no_replica_gives_way() -> None:
    world = World()
    await world.after(0, a=False)
    world.etcd.away = True
    assert await world.after(2 * SUSPEND_AFTER) == {"a", "b", "other"}


def test_no_two_kinds_share_a_key() -> None:
    parts: dict[str, Any] = {name: each._key for name, each in World().parts.items()}
    assert parts == {"a": "/p/reach/watcher/a", "b": "/p/reach/watcher/b", "other": "/p/reach/scaler/other"}
