"""Leases, registry, election and partitions on a real etcd that dies, loses data, freezes, or requires a login."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dynamo_devcluster.certs import CertificateAuthority
from dynamo_devcluster.probe import LocalHttp
from dynamo_devcluster.programs import Programs
from dynamo_devcluster.servers import EtcdServer, ServerTls
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.leases.channel import EtcdOptions
from dynamo_shared.leases.client import EtcdClient
from dynamo_shared.leases.election import Election
from dynamo_shared.leases.errors import (
    CertificateFileError,
    EtcdError,
    EtcdLoginError,
    EtcdUnavailableError,
)
from dynamo_shared.leases.partitions import GainLog, Partitions
from dynamo_shared.leases.registry import Registry
from dynamo_shared.leases.rendezvous import PARTITIONS, SCHEME, partition_of
from dynamo_shared.leases.session import Session
from dynamo_shared.runtime import Health, Metrics
from dynamo_shared.runtime.leasing import leasing
from dynamo_shared.runtime.settings import load_settings

from tests.building.waiting import until


async def _version(_: str) -> bytes:
    return b"{}"


#: A stand-in for Kubernetes, whose Leases these tests do not use.
NO_KUBE = cast("KubeClient", SimpleNamespace(raw_get=_version))

TTL = 4
#: TTL of leases that must survive pauses of the machine.
LONG = 600
PREFIX = "/test/local"

_numbers = itertools.count(1)


class Replica:
    """One process of a service, as etcd sees it."""

    def __init__(self, url: str, ttl: int = TTL) -> None:
        self.name = f"replica-{next(_numbers)}"
        self.client = EtcdClient(EtcdOptions(endpoints=(url,), timeout=1.0))
        self.session = Session.begin(self.client, prefix=PREFIX, replica=self.name, ttl=ttl)
        self.lease = self.session.lease
        self.registry = Registry(self.session, "builder", {"version": "1"})
        self.partitions = Partitions(self.session, self.registry, "builder", GainLog())
        self.election = Election(self.session, "watcher")
        self.tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Replica:
        parts = (self.lease, self.registry, self.partitions, self.election)
        self.tasks = [asyncio.create_task(part.run(), name=type(part).__name__) for part in parts]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    async def end(self) -> None:
        """Shut down in order, so that others need not wait for expiry."""
        await self.crash(close=False)
        await self.lease.close()
        await self.client.close()

    async def crash(self, *, close: bool = True) -> None:
        """Stop without releasing anything in etcd."""
        for task in self.tasks:
            assert not task.done(), task
            task.cancel()
        results = await asyncio.gather(*self.tasks, return_exceptions=True)
        assert [error for error in results if not isinstance(error, asyncio.CancelledError)] == []
        self.tasks = []
        if close:
            await self.client.close()


class Referee:
    """Checks all replicas repeatedly: a partition never has two owners, and the election never has two leaders."""

    def __init__(self, *replicas: Replica) -> None:
        self.replicas = replicas
        self.checks = 0

    async def __aenter__(self) -> Referee:
        self._task = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        assert self.checks

    async def _watch(self) -> None:
        while True:
            self.check()
            await asyncio.sleep(0.002)

    def check(self) -> None:
        self.checks += 1
        owners: dict[int, str] = {}
        for replica in self.replicas:
            for partition in replica.partitions.held:
                assert partition not in owners, f"{partition}: {owners[partition]} and {replica.name}"
                owners[partition] = replica.name
        assert sum(replica.election.is_leader() for replica in self.replicas) <= 1


class Wire:
    """A TCP connection to etcd that can be frozen like a broken network: open, and silent."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Wire:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()

    def freeze(self) -> None:
        self._open.clear()

    def thaw(self) -> None:
        self._open.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        for source, target in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.create_task(self._pump(source, target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                await self._open.wait()
                target.write(data)
                await target.drain()
        target.close()


async def held_in_etcd(client: EtcdClient, lease: int) -> set[str]:
    """Keys of a lease, as the server has them."""
    assert lease
    return {key for key, kept in (await client.read(f"{PREFIX}/")).keys.items() if kept.lease == lease}


def complete(*replicas: Replica) -> Callable[[], bool]:
    """All partitions are held, and each replica has some."""
    return lambda: (
        sum(len(replica.partitions.held) for replica in replicas) == PARTITIONS
        and all(replica.partitions.held for replica in replicas)
        and sum(replica.election.is_leader() for replica in replicas) == 1
    )


@pytest.fixture
async def settled_etcd(etcd_server: EtcdServer) -> EtcdServer:
    """An etcd after its first start: another test covers the wait for leases of a previous instance."""
    async with EtcdClient(EtcdOptions(endpoints=(etcd_server.url,))) as client:
        await client.put(f"{PREFIX}/epoch", b"")
    return etcd_server


async def test_replicas_share_the_work_and_hand_it_over(settled_etcd: EtcdServer) -> None:
    # Replicas retry after a second, so slow answers of a busy machine are harmless; the test asks once.
    patient = EtcdOptions(endpoints=(settled_etcd.url,), timeout=60.0)
    async with EtcdClient(patient) as client, Replica(settled_etcd.url, LONG) as first:
        await until(complete(first))
        kept = first.partitions.held
        async with Replica(settled_etcd.url, LONG) as second, Referee(first, second):
            await until(complete(first, second))
            assert first.partitions.held < kept, "only what is given away moves"
            assert set(first.registry.members()) == {first.name, second.name}
            assert first.registry.members()[second.name] == {"version": "1", **SCHEME}
            key = ObjectKey("default", "llama")
            owner = first if partition_of(key) in first.partitions.held else second
            assert owner.partitions.owns(key)
            assert [first.partitions.owns(key), second.partitions.owns(key)].count(True) == 1
            lease = first.lease.id
            assert await held_in_etcd(client, lease)
            await first.end()
            assert not await held_in_etcd(client, lease), "nothing is left that would have to run out"
            await until(complete(second))


async def test_a_disconnected_replica_stops_before_another_starts(settled_etcd: EtcdServer) -> None:
    async with (
        Wire(settled_etcd.port) as wire,
        Replica(wire.url) as first,
        Replica(settled_etcd.url) as second,
        Referee(first, second),
    ):
        await until(complete(first, second))
        while_alive: list[bool] = []
        second.partitions.on_gain(lambda _: while_alive.append(first.lease.alive()))
        wire.freeze()
        await until(lambda: not first.lease.alive())
        assert not first.partitions.held
        assert not first.election.is_leader()
        await until(complete(second), within=60)
        assert while_alive, "it has taken over"
        assert not any(while_alive), "not before the first one's deadline"
        wire.thaw()
        await until(complete(first, second))


@pytest.mark.parametrize("fault", ["killed", "frozen"])
async def test_server_away_for_longer_than_the_ttl(settled_etcd: EtcdServer, fault: str) -> None:
    async with Replica(settled_etcd.url) as first, Replica(settled_etcd.url) as second, Referee(first, second):
        await until(complete(first, second))
        await (settled_etcd.kill() if fault == "killed" else settled_etcd.suspend())
        try:
            await until(lambda: not first.lease.alive() and not second.lease.alive())
            assert not first.partitions.held | second.partitions.held
        finally:
            if fault == "killed":
                await settled_etcd.start()
            else:
                settled_etcd.resume()
        await until(complete(first, second))


async def test_server_that_comes_back_without_its_data(settled_etcd: EtcdServer) -> None:
    async with Wire(settled_etcd.port) as wire, Replica(wire.url) as first:
        await until(complete(first))
        # Cut off at the worst time: it does not learn that its lease is gone, and trusts it until its own deadline.
        await until(lambda: not first.lease.trouble)
        wire.freeze()
        await settled_etcd.wipe()
        await settled_etcd.start()
        async with Replica(settled_etcd.url) as second, Referee(first, second):
            while_alive: list[bool] = []
            second.partitions.on_gain(lambda _: while_alive.append(first.lease.alive()))
            await until(complete(second), within=60)
            assert while_alive, "it has begun"
            assert not any(while_alive), "not before the first one's deadline"
            wire.thaw()
            await until(complete(first, second), within=60)


async def test_watch_that_asks_for_compacted_revisions(settled_etcd: EtcdServer) -> None:
    http = LocalHttp(settled_etcd.port)
    async with EtcdClient(EtcdOptions(endpoints=(settled_etcd.url,))) as client:
        for number in range(5):
            await client.put("/other", str(number).encode())
        revision = (await client.read("/other")).revision
        status, _ = await http.request("POST", "/v3/kv/compaction", {"revision": str(revision)})
        assert status == 200
        async with client.watch("/other", 1) as changes, asyncio.timeout(60):
            with pytest.raises(EtcdUnavailableError, match="compacted"):
                _ = [change async for change in changes]


async def test_the_next_endpoint_is_used_when_one_does_not_answer(settled_etcd: EtcdServer) -> None:
    async with EtcdClient(EtcdOptions(endpoints=("http://127.0.0.1:1", settled_etcd.url))) as client:
        with pytest.raises(EtcdUnavailableError, match=r"127\.0\.0\.1:1"):
            await client.get("/key")
        await client.put("/key", b"value")
        observed = await client.get("/key")
        assert observed is not None
        assert observed.value == b"value"


async def test_frozen_server_times_out(settled_etcd: EtcdServer) -> None:
    async with EtcdClient(EtcdOptions(endpoints=(settled_etcd.url,), timeout=0.5)) as client:
        await answered(client)
        await settled_etcd.suspend()
        try:
            # It answers again only after this.
            with pytest.raises(EtcdUnavailableError, match="Deadline Exceeded"):
                await client.get("/key")
        finally:
            settled_etcd.resume()
        await answered(client)


async def answered(client: EtcdClient) -> None:
    """Return once the server has answered in time: on a busy machine a running one may be too slow for this client."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(EtcdUnavailableError):
                return await client.put("/key", b"value")


@pytest.fixture
async def tls_etcd(programs: Programs, tmp_path: Path) -> AsyncIterator[tuple[EtcdServer, CertificateAuthority]]:
    """An etcd that requires client certificates."""
    ca = CertificateAuthority(tmp_path / "pki")
    tls = ServerTls(ca.certificate, ca.server("etcd", also_client=True), ca.client("root"))
    async with EtcdServer(await programs.obtain("etcd"), tmp_path / "etcd", tls=tls) as server:
        yield server, ca


async def test_client_certificates(tls_etcd: tuple[EtcdServer, CertificateAuthority], tmp_path: Path) -> None:
    server, ca = tls_etcd
    pair = ca.client("replica")
    known = EtcdOptions(
        endpoints=(server.url,), ca_file=ca.certificate, cert_file=pair.certificate, key_file=pair.key, timeout=60
    )
    async with EtcdClient(known) as client:
        grant = await client.grant(10)
        assert await client.keepalive(grant.lease) == 10
        await client.put("/key", b"value", lease=grant.lease)
        await client.revoke(grant.lease)
        assert await client.get("/key") is None
        assert await client.keepalive(grant.lease) == 0
    stranger = CertificateAuthority(tmp_path / "others").client("replica")
    for cert, key in ((None, None), (stranger.certificate, stranger.key)):
        options = EtcdOptions(endpoints=(server.url,), ca_file=ca.certificate, cert_file=cert, key_file=key, timeout=2)
        async with EtcdClient(options) as client:
            with pytest.raises(EtcdError):
                await client.get("/key")


async def test_user_and_password(etcd_server: EtcdServer) -> None:
    await _enable_passwords(etcd_server)
    passwords = iter(["s3cret"] * 10)
    options = EtcdOptions(endpoints=(etcd_server.url,), user="root", password=lambda: next(passwords))
    async with EtcdClient(options) as client:
        await client.put("/key", b"value")
        grant = await client.grant(10)
        assert await client.keepalive(grant.lease) == 10
        # Simple tokens are lost with the server: they are rejected afterwards, and requested again.
        await etcd_server.restart()
        await answered(client)
        assert (await client.read("/key")).keys["/key"].value == b"value"
        assert await client.keepalive(grant.lease) == 10
        async with client.watch("/", 0) as changes:
            async for _ in changes:
                break
    wrong = EtcdOptions(endpoints=(etcd_server.url,), user="root", password=lambda: "guessed")
    async with EtcdClient(wrong) as client:
        with pytest.raises(EtcdLoginError) as refused:
            await client.get("/key")
    assert "guessed" not in str(refused.value)
    async with EtcdClient(EtcdOptions(endpoints=(etcd_server.url,))) as client:
        with pytest.raises(EtcdLoginError):
            await client.get("/key")


async def test_a_password_that_cannot_be_read(etcd_server: EtcdServer, tmp_path: Path) -> None:
    await _enable_passwords(etcd_server)
    file = tmp_path / "password"
    options = EtcdOptions(endpoints=(etcd_server.url,), user="root", password=file.read_text)
    async with EtcdClient(options) as client:
        with pytest.raises(CertificateFileError, match="password: No such file"):
            await client.get("/key")
        file.write_text("s3cret")
        assert await client.get("/key") is None


async def test_a_password_that_the_server_does_not_require(etcd_server: EtcdServer) -> None:
    options = EtcdOptions(endpoints=(etcd_server.url,), user="root", password=lambda: "s3cret")
    async with EtcdClient(options) as client:
        await client.put("/key", b"value")


async def test_leases_and_health_from_settings(etcd_server: EtcdServer) -> None:
    settings = load_settings(
        None, {"DYNAMO_PLATFORM__ETCD__ENDPOINTS": etcd_server.url, "DYNAMO_PLATFORM__ETCD__LEASE_TTL": "4s"}
    )
    health, metrics = Health(), Metrics()
    key = ObjectKey("default", "llama")
    async with leasing(settings, NO_KUBE, health, metrics) as leases:
        ownership, leadership = leases.ownership("builder"), leases.leadership("watcher")
        assert not ownership.owns(key)
        assert not health.ready
        await asyncio.wait_for(leadership.wait_elected(), 60)
        await until(lambda: ownership.owns(key) and health.ready)
        assert leases.ownership("builder") is ownership
        await until(
            lambda: metrics.registry.get_sample_value("dynamo_platform_partitions", {"service": "builder"}) == 32
        )

        def losses() -> float:
            return metrics.registry.get_sample_value("dynamo_platform_lease_losses_total") or 0.0

        await until(lambda: metrics.registry.get_sample_value("dynamo_platform_lease_alive") == 1)
        before = losses()
        await etcd_server.kill()
        await until(lambda: not health.ready)
        assert losses() == before + 1
        assert not ownership.owns(key)
        await leadership.wait_lost()


async def test_one_replica_needs_no_etcd() -> None:
    settings = load_settings(
        None, {"DYNAMO_PLATFORM__ETCD__ENDPOINTS": "http://127.0.0.1:1", "DYNAMO_PLATFORM__REPLICAS": "1"}
    )
    health = Health()
    async with leasing(settings, NO_KUBE, health, Metrics()) as leases:
        assert leases.ownership("builder").owns(ObjectKey("default", "llama"))
        await leases.leadership("watcher").wait_elected()
        assert health.ready


async def _enable_passwords(server: EtcdServer) -> None:
    http = LocalHttp(server.port)

    async def call(path: str, **body: Any) -> None:
        status, answer = await http.request("POST", f"/v3/{path}", body)
        assert status == 200, json.loads(answer)

    await call("auth/role/add", name="root")
    await call("auth/user/add", name="root", password="s3cret")
    await call("auth/user/grant", user="root", role="root")
    await call("auth/enable")
