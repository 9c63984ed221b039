"""Worker discovery on an in-memory bus: an incomplete read reports nothing, and one replica takes over from another."""

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from dynamo_model_discovery.workers import discovery
from dynamo_model_discovery.workers.assembly import assemble
from dynamo_model_discovery.workers.discovery import NAME, WorkerDiscoveryService
from dynamo_model_discovery.workers.sources.kubernetes import READS
from dynamo_shared.aio import ended
from dynamo_shared.api.resources import DYNAMO_WORKER_METADATAS, ENDPOINT_SLICES, PODS, ObjectKey, Resource
from dynamo_shared.bus import streams
from dynamo_shared.bus.protocol import CaughtUp, Message, Start
from dynamo_shared.leases import AllKeys
from dynamo_shared.runtime import Health, Metrics, ServiceContext, load_settings
from dynamo_shared.state import StateReader
from dynamo_shared.state.publisher import StatePublisher
from dynamo_shared.wire import subjects

from tests.building.leadership import Leadership
from tests.building.memory_bus import MemoryBus
from tests.building.waiting import until
from tests.unit.model_discovery.worker_building import card, instance, pod

ADDRESS = "10.0.0.7"


class Cluster:
    """A bus that a watcher publishes to, and a directory for file discovery."""

    def __init__(self, directory: Path) -> None:
        self.bus = MemoryBus()
        self.directory = directory
        self.publisher = StatePublisher(self.bus, "local")
        self._versions = iter(range(1, 10_000))

    async def publish(self, resource: Resource, *objects: dict[str, Any], synced: bool = True) -> None:
        for obj in objects:
            obj |= {**resource.type_meta}
            obj["metadata"] |= {"resourceVersion": str(next(self._versions))}
            self.publisher.put(resource, obj)
        if synced:
            await self.publisher.mark_synced(resource, "1")
        await self.publisher.flushed(resource)

    def write(self, *records: tuple[str, bytes]) -> None:
        for key, value in records:
            _, kind, name = key.split("/", 2)
            path = self.directory / "v1" / kind / quote(name, safe="")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(value)
            # No process touches the files here.
            os.utime(path, (2**33, 2**33))

    def service(self, leader: Leadership | None = None, *, files: bool = True) -> tuple[WorkerDiscoveryService, Health]:
        variables = {"DYNAMO_PLATFORM__MODEL_DISCOVERY__WORKERS__FILE_DIRECTORY": str(self.directory)} if files else {}
        health, leadership = Health(), leader or Leadership(elected=True)
        context = ServiceContext(
            settings=load_settings(None, variables), kube=None, bus=self.bus, health=health, metrics=Metrics(),  # type: ignore[arg-type]
            ownership=lambda _: AllKeys(), leadership=lambda _: leadership,
        )  # fmt: skip
        return WorkerDiscoveryService(context), health

    @asynccontextmanager
    async def serving(self, leader: Leadership | None = None, *, files: bool = True) -> AsyncIterator[Health]:
        service, health = self.service(leader, files=files)
        task = asyncio.create_task(service.serve())
        try:
            yield health
        finally:
            task.cancel()
            # Cancellation is the only expected end; any other one raises.
            with suppress(asyncio.CancelledError):
                await task

    async def reported(self) -> list[str]:
        """Worker events in order: namespace, name, event."""
        subscription = await self.bus.subscribe(streams.EVENTS, ["dynamo.evt.v1.local.*.worker.>"], start=Start.ALL)
        results = []
        async for item in subscription:
            if isinstance(item, Message):
                reported = subjects.parse_event(item.subject)
                results.append(f"{reported.namespace or '-'} {reported.name} {reported.event}")
            elif isinstance(item, CaughtUp):
                break
        await subscription.close()
        return results


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    made = Cluster(tmp_path)
    await made.bus.declare(*streams.ALL)
    running = asyncio.create_task(made.publisher.run())
    yield made
    await ended(running)


async def test_many_records_are_compared_in_a_thread(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """One namespace may have fifty thousand, whose comparison takes seconds. Leases and probes must go on meanwhile."""
    threads: set[threading.Thread] = set()

    def assembled(*given: Any) -> Any:
        threads.add(threading.current_thread())
        return assemble(*given)

    monkeypatch.setattr(discovery, "LARGE", -1)
    monkeypatch.setattr(discovery, "assemble", assembled)
    for resource in READS:
        await cluster.publish(resource)
    cluster.write(instance(1), card(1))
    async with cluster.serving():
        await reported(cluster, ["- dyn/backend/1 joined"])
    assert threads.isdisjoint({threading.current_thread()})


async def reported(cluster: Cluster, expected: list[str]) -> None:
    heard: list[str] = []
    try:
        async with asyncio.timeout(60):
            while (heard := await cluster.reported()) != expected:
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"reported {heard}, expected {expected}") from None


def registered(number: int = 7) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A pod, its DynamoWorkerMetadata and its EndpointSlice."""
    data = {
        "endpoints": {"x": json.loads(instance(number)[1])},
        "model_cards": {"x": json.loads(card(number, worker_type="aggregated")[1])},
    }
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p"}
    metadata = {
        "metadata": {"name": "p", "namespace": "team", "uid": "u1", "ownerReferences": [owner]},
        "spec": {"data": data},
    }
    slice_ = {
        "metadata": {"name": "s", "namespace": "team", "uid": "u2", "labels": {"nvidia.com/dynamo-discovery-enabled": "true"}},
        "endpoints": [{"conditions": {"ready": True}, "targetRef": {"kind": "Pod", "name": "p"}}],
    }  # fmt: skip
    return pod("p", ADDRESS, dynamo_graph_deployment_name="g"), metadata, slice_


async def test_a_worker_in_kubernetes_joins_and_leaves_with_its_readiness(cluster: Cluster) -> None:
    pods, metadata, slice_ = registered()
    for resource, obj in ((PODS, pods), (DYNAMO_WORKER_METADATAS, metadata), (ENDPOINT_SLICES, slice_)):
        await cluster.publish(resource, obj)
    async with cluster.serving(files=False) as health:
        await reported(cluster, ["team dyn/backend/7 joined"])
        await until(lambda: health.report()["parts"][NAME]["state"] == "ok")  # type: ignore[index]
        slice_["endpoints"][0]["conditions"]["ready"] = False
        await cluster.publish(ENDPOINT_SLICES, slice_)
        await reported(cluster, ["team dyn/backend/7 joined", "team dyn/backend/7 left"])


@pytest.mark.parametrize("order", [READS, READS[::-1], (ENDPOINT_SLICES, PODS, DYNAMO_WORKER_METADATAS)])
async def test_a_restart_with_half_a_snapshot_reports_nothing(cluster: Cluster, order, monkeypatch) -> None:
    """Objects arrive in any order after the start. An object that is still missing has neither gone nor changed."""
    objects = dict(zip((PODS, DYNAMO_WORKER_METADATAS, ENDPOINT_SLICES), registered(), strict=True))
    for resource in order:
        await cluster.publish(resource, objects[resource])
    async with cluster.serving(files=False):
        await reported(cluster, ["team dyn/backend/7 joined"])
    synced: set[str] = set()
    monkeypatch.setattr(StateReader, "is_synced", lambda _, resource: resource.id in synced)
    async with cluster.serving(files=False) as health:
        for resource in order:
            await cluster.publish(resource, objects[resource])
            await asyncio.sleep(2 * discovery.DEBOUNCE)
            assert await cluster.reported() == ["team dyn/backend/7 joined"]
            synced.add(resource.id)
        await until(lambda: health.report()["parts"][NAME]["state"] == "ok")  # type: ignore[index]
        assert await cluster.reported() == ["team dyn/backend/7 joined"]


async def test_file_workers_wait_for_their_pods_before_they_are_reported(cluster: Cluster) -> None:
    cluster.write(instance(7), card(7))
    pods, _, _ = registered()
    async with cluster.serving():
        await asyncio.sleep(2 * discovery.DEBOUNCE)
        assert await cluster.reported() == []
        for resource, objects in ((DYNAMO_WORKER_METADATAS, ()), (ENDPOINT_SLICES, ()), (PODS, (pods,))):
            await cluster.publish(resource, *objects)
        await reported(cluster, ["team dyn/backend/7 joined"])


async def test_workers_are_reported_even_without_kubernetes(cluster: Cluster, monkeypatch) -> None:
    monkeypatch.setattr(discovery, "PODS_WITHIN", 0.2)
    cluster.write(instance(7), card(7))
    async with cluster.serving() as health:
        await reported(cluster, ["- dyn/backend/7 joined"])
        report = health.report()["parts"][NAME]  # type: ignore[index]
        assert (report["state"], report["message"]) == ("degraded", "not read yet: kubernetes")


async def test_another_replica_takes_over_without_an_event(cluster: Cluster, monkeypatch) -> None:
    monkeypatch.setattr(discovery, "PODS_WITHIN", 0.0)
    cluster.write(instance(7), card(7))
    first, second = Leadership(elected=True), Leadership()
    async with cluster.serving(first), cluster.serving(second) as health:
        await reported(cluster, ["- dyn/backend/7 joined"])
        assert health.report()["parts"][NAME]["message"] == "standing by"  # type: ignore[index]
        first.elected.clear()
        first.lost.set()
        second.elected.set()
        cluster.write(instance(8))
        await reported(cluster, ["- dyn/backend/7 joined", "- dyn/backend/8 joined"])
        await until(lambda: health.report()["parts"][NAME]["message"] != "standing by")  # type: ignore[index]


def word(health: Health) -> str:
    """The message of a replica's worker discovery; empty until it reports one."""
    parts: Any = health.report()["parts"]
    return str(parts.get(NAME, {}).get("message", ""))


async def test_of_two_replicas_elected_in_different_ways_the_later_one_writes(cluster: Cluster, monkeypatch) -> None:
    """During an upgrade that introduces or changes leases, the old replica does not know the new one's lease."""
    for resource in READS:
        await cluster.publish(resource)
    cluster.write(instance(7), card(7))
    async with cluster.serving() as older:
        await until(lambda: word(older) == "active")
        await reported(cluster, ["- dyn/backend/7 joined"])
        async with cluster.serving() as newer:
            await until(lambda: word(newer) == "active")
            for number in (8, 9, 10):
                cluster.write(instance(number), card(number))
                joined = [f"- dyn/backend/{each:x} joined" for each in range(7, number + 1)]
                await reported(cluster, joined)
            await until(lambda: "another replica" in word(older))
            assert await cluster.reported() == joined
            assert word(newer) == "active"


async def test_a_replica_that_lost_its_election_counts_no_workers(cluster: Cluster, monkeypatch) -> None:
    monkeypatch.setattr(discovery, "PODS_WITHIN", 0.0)
    cluster.write(instance(7), card(7))
    leader = Leadership(elected=True)
    service, health = cluster.service(leader)
    registry = service._context.metrics.registry

    def counted() -> float | None:
        labels = {"role": "aggregated", "source": "file"}
        return registry.get_sample_value("dynamo_model_discovery_workers", labels)

    task = asyncio.create_task(service.serve())
    await until(lambda: counted() == 1)
    leader.elected.clear()
    leader.lost.set()
    await until(lambda: health.report()["parts"][NAME]["message"] == "standing by")  # type: ignore[index]
    assert counted() is None
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_pod_that_is_not_a_worker_sends_no_request_to_the_bus(cluster: Cluster, monkeypatch) -> None:
    monkeypatch.setattr(discovery, "CHECK_INTERVAL", 3600.0)
    pods, metadata, slice_ = registered()
    for resource, obj in ((PODS, pods), (DYNAMO_WORKER_METADATAS, metadata), (ENDPOINT_SLICES, slice_)):
        await cluster.publish(resource, obj)
    rounds: list[int] = []
    publish, asked = discovery._Active._publish, list[str]()

    async def counted(active: Any, steps: Any) -> None:
        await publish(active, steps)
        rounds.append(len(steps))

    async def last_message(stream: streams.StreamSpec, subject: str) -> Message | None:
        asked.append(subject)
        return await find(stream, subject)

    monkeypatch.setattr(discovery._Active, "_publish", counted)
    async with cluster.serving(files=False):
        await reported(cluster, ["team dyn/backend/7 joined"])
        await until(lambda: len(rounds) > 0)
        find = cluster.bus.last_message
        monkeypatch.setattr(cluster.bus, "last_message", last_message)
        rounds.clear()
        await cluster.publish(PODS, pod("q", "10.0.0.8"))
        await until(lambda: len(rounds) > 0)
        assert (set(rounds), asked) == ({0}, [])


async def test_a_bus_that_reconnects_while_state_is_read_removes_no_worker(cluster: Cluster, monkeypatch) -> None:
    """Each connection leads to a check of STATE. An entry that is not read yet must not count as foreign."""
    monkeypatch.setattr(discovery, "PODS_WITHIN", 0.0)
    cluster.write(instance(7), card(7))
    async with cluster.serving():
        await reported(cluster, ["- dyn/backend/7 joined"])
        subject = subjects.state_subject("local", "workers.discovery.dynamo", ObjectKey("", "dyn/backend/7"))
        async with asyncio.timeout(60):
            while (before := await cluster.bus.last_message(streams.STATE, subject)) is None:
                await asyncio.sleep(0.01)
    cluster.bus.disconnect()
    async with cluster.serving():
        await asyncio.sleep(2 * discovery.DEBOUNCE)
        cluster.bus.reconnect()
        cluster.write(instance(8))
        await reported(cluster, ["- dyn/backend/7 joined", "- dyn/backend/8 joined"])
        assert await cluster.bus.last_message(streams.STATE, subject) == before


async def test_a_lost_state_is_filled_again(cluster: Cluster, monkeypatch) -> None:
    monkeypatch.setattr(discovery, "PODS_WITHIN", 0.0)
    cluster.write(instance(7), card(7))
    async with cluster.serving():
        await reported(cluster, ["- dyn/backend/7 joined"])
        cluster.bus.lose_data()
        # As any other service would, before a subscriber of the in-memory bus misses the stream.
        await cluster.bus.declare(*streams.ALL)
        # After a reconnection a publisher checks whether the stream is still the same.
        cluster.bus.disconnect()
        cluster.bus.reconnect()
        cluster.write(instance(8))
        await reported(cluster, ["- dyn/backend/8 joined"])

        async def both() -> bool:
            subject = subjects.state_subject("local", "workers.discovery.dynamo", ObjectKey("", "dyn/backend/7"))
            return await cluster.bus.last_message(streams.STATE, subject) is not None

        async with asyncio.timeout(60):
            while not await both():
                await asyncio.sleep(0.01)
