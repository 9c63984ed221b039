"""Many models on many workers: no one waits for a failing worker, and all pending work is done or reported."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from dynamo_model_discovery.lora import keeper as keeper_module
from dynamo_model_discovery.lora.adapter import Adapter
from dynamo_model_discovery.lora.api import Listing
from dynamo_model_discovery.lora.keeper import (
    MAX_LISTED_CHARACTERS,
    MAX_LISTED_NAMES,
    NAME_BYTES,
    AdapterKeeper,
    WorkerModel,
)
from dynamo_model_discovery.lora.responses import LoraError
from dynamo_model_discovery.models.workers import Worker
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.runtime import WorkQueue
from dynamo_shared.runtime.facts import Fact
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.settings.model_discovery import ModelDiscovery
from dynamo_shared.wire.specifications.discovery import AdapterData

from tests.building.tasks import in_background
from tests.building.waiting import until

from .memory_workers import MemoryWorkers

KEY = ObjectKey("prod", "m")
OTHER = ObjectKey("prod", "other")
ADAPTER = Adapter("a", "s3://1")


def workers(count: int) -> list[Worker]:
    return [
        Worker(f"pod-{number}", f"uid-{number}", f"http://10.0.0.{number}:9090", "main:0") for number in range(count)
    ]


def model(uid: str = "m1") -> dict[str, Any]:
    return {"metadata": {"name": "m", "namespace": "prod", "uid": uid}, "spec": {"modelName": "a"}}


@dataclass
class World(MemoryWorkers):
    """Workers, and the facts that the keeper announced about them."""

    reported: list[tuple[str, str]] = field(default_factory=list)
    allowed: bool = True
    models: dict[ObjectKey, dict[str, Any]] = field(default_factory=lambda: {KEY: model(), OTHER: model("m2")})
    now: float = 0.0
    news: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    last: dict[str, Any] = field(default_factory=dict)
    """what was reported of last"""

    def known(self, key: ObjectKey, uid: str) -> dict[str, Any] | None:
        observed = self.models[key]
        return observed if observed["metadata"]["uid"] == uid else None

    def announce(self, model: dict[str, Any], fact: Fact) -> None:
        self.last = model
        pod = fact.data.pod if isinstance(fact.data, AdapterData) else fact.message.partition(" ")[0]
        self.reported.append((fact.event or fact.reason, pod))
        self.news.set()

    async def until(self, what: str, count: int) -> None:
        """Wait until that many workers were reported with this event."""
        async with asyncio.timeout(60):
            while len({pod for reported, pod in self.reported if reported == what}) < count:
                self.news.clear()
                await self.news.wait()


@asynccontextmanager
async def keeping(world: World, **settings: Any) -> AsyncIterator[AdapterKeeper]:
    configured = ModelDiscovery(**{"concurrency": 4, "longest_retry": 0.1, "probe_interval": 60.0, **settings})
    metrics = Metrics()
    queues: tuple[WorkQueue[Any], WorkQueue[Any]] = (
        WorkQueue(metrics=metrics.queue("first")),
        WorkQueue(metrics=metrics.queue("second")),
    )
    keeper = AdapterKeeper(
        world,
        configured,
        *queues,
        world,  # type: ignore[arg-type]
        model=world.known,
        may=lambda _: world.allowed,
        changed=lambda _: world.changed.set(),
        clock=lambda: world.now,
    )
    async with in_background(keeper.run()):
        yield keeper


@asynccontextmanager
async def loaded(count: int = 1, **settings: Any) -> AsyncIterator[tuple[World, AdapterKeeper, list[Worker]]]:
    """Workers that have loaded the adapter."""
    world, all_ = World(), workers(count)
    async with keeping(world, **settings) as keeper:
        keeper.set_desired(KEY, "m1", all_, ADAPTER, ())
        await world.until("loaded", count)
        yield world, keeper, all_


async def test_a_hanging_worker_blocks_no_other():
    world = World()
    all_ = workers(40)
    world.hanging = {worker.url for worker in all_[:2]}
    async with keeping(world) as keeper:
        states = keeper.set_desired(KEY, "m1", all_, ADAPTER, ())
        await world.until("loaded", 38)
    assert sum(state.loaded for state in states.values()) == 38
    assert len(states) == 40


async def test_workers_that_failed_occupy_only_a_part_of_the_concurrent_requests():
    """Even if all of them hang later, other workers still get requests."""
    world, all_ = World(), workers(12)
    bad, good = all_[:8], all_[8:]
    world.broken = {worker.url for worker in bad}
    async with keeping(world) as keeper:
        keeper.set_desired(KEY, "m1", bad, ADAPTER, ())
        await world.until("failed", 8)
        world.hanging, world.broken = world.broken, set()
        keeper.set_desired(KEY, "m1", all_, ADAPTER, ())
        await world.until("loaded", 4)
    assert {pod for what, pod in world.reported if what == "loaded"} == {worker.pod for worker in good}


async def test_a_failure_is_reported_once_and_retried_until_it_succeeds():
    world, (worker,) = World(), workers(1)
    world.broken = {worker.url}
    async with keeping(world) as keeper:
        state = keeper.set_desired(KEY, "m1", [worker], ADAPTER, ())[worker.uid]
        await until(lambda: state.failures >= 3)
        assert world.reported == [("failed", "pod-0")]
        world.broken.clear()
        await world.until("loaded", 1)
    assert not state.failure


async def test_a_failure_of_a_replaced_adapter_is_not_reported_for_its_successor():
    asked, go_on = asyncio.Event(), asyncio.Event()

    class Refusing(World):
        async def load(self, url: str, path: str | None, adapter: Adapter) -> None:
            if adapter == ADAPTER:
                asked.set()
                await go_on.wait()
                raise LoraError("HTTP 500: no such bucket")
            await super().load(url, path, adapter)

    world, all_ = Refusing(), workers(1)
    async with keeping(world) as keeper, asyncio.timeout(60):
        keeper.set_desired(KEY, "m1", all_, ADAPTER, ())
        await asked.wait()
        keeper.set_desired(KEY, "m1", all_, Adapter("a", "s3://2"), ())
        go_on.set()
        await world.until("loaded", 1)
    assert world.reported == [("loaded", "pod-0")]


async def test_setting_the_same_adapter_again_sends_no_request():
    async with loaded(3) as (world, keeper, all_):
        asked = len(world.calls)
        for _ in range(10):
            keeper.set_desired(KEY, "m1", all_, ADAPTER, ())
            await asyncio.sleep(0)
        assert len(world.calls) == asked == 9


async def test_one_listing_serves_all_adapters_of_a_worker():
    world, (worker,) = World(), workers(1)
    async with keeping(world, probe_interval=0.2) as keeper:
        for number in range(20):
            keeper.set_desired(KEY, f"m{number}", [worker], Adapter(f"a{number}", "s3://1"), ())
        await until(lambda: len(world.loras.get(worker.url, ())) == 20)
        before, world.now = world.count("GET"), 0.05
        await until(lambda: sum(state.last_listed >= 0.05 for state in keeper.states()) == 20)
        assert world.count("GET") - before < 10
        assert world.count("POST") == 20


async def test_serving_other_adapters_does_not_renew_a_cached_listing() -> None:
    """With three adapters or more, each one's use renewed the listing, and the worker was not asked again."""
    world, (worker,) = World(), workers(1)
    async with keeping(world, probe_interval=60.0) as keeper:
        lost, *_ = [
            keeper.set_desired(KEY, f"m{number}", [worker], Adapter(f"a{number}", "s3://1"), ())[worker.uid]
            for number in range(3)
        ]
        await until(lambda: all(state.loaded for state in keeper.states()))
        for world.now, model in ((20.0, "m1"), (40.0, "m2"), (60.0, "m0")):
            await keeper._work(WorkerModel(model, worker.uid, KEY.namespace))
            world.loras[worker.url].pop("a0", None)
        assert not lost.loaded


async def test_deleted_workers_are_forgotten():
    async with loaded(3) as (_, keeper, all_):
        assert set(keeper.set_desired(KEY, "m1", all_[1:], ADAPTER, ())) == {"uid-1", "uid-2"}
        keeper.prune("m1", all_[2:])
        assert [state.worker.pod for state in keeper.states()] == ["pod-2"]
        keeper.drop("m1")
        assert not list(keeper.states())


async def test_work_on_a_deleted_worker_sends_no_more_requests():
    """A pod on its node's network has the address of its predecessor."""
    asked, go_on, answered = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Slow(World):
        async def listing(self, url: str) -> Listing:
            asked.set()
            await go_on.wait()
            answered.set()
            return await super().listing(url)

    world = Slow()
    async with keeping(world) as keeper, asyncio.timeout(60):
        state = keeper.set_desired(KEY, "m1", workers(1), ADAPTER, ())["uid-0"]
        await asked.wait()
        keeper.prune("m1", ())
        go_on.set()
        await answered.wait()
        await until(lambda: not state.busy)
    assert world.count("POST") == 0
    assert world.reported == []


async def test_models_of_another_replica_send_no_requests():
    world, all_ = World(), workers(3)
    world.hanging = {all_[0].url}
    async with keeping(world) as keeper:
        keeper.set_desired(KEY, "m1", all_, ADAPTER, ())
        await world.until("loaded", 2)
        world.allowed = False
        keeper.disown()
        await asyncio.sleep(0)
        assert not list(keeper.states())
        asked = len(world.calls)
        world.hanging.clear()
        keeper.set_desired(KEY, "m1", all_, ADAPTER, ())
        await asyncio.sleep(0.05)
        assert len(world.calls) == asked


async def test_released_models_have_no_work_in_progress():
    world, all_ = World(), workers(3)
    world.hanging = {worker.url for worker in all_}
    async with keeping(world) as keeper:
        keeper.set_desired(KEY, "m1", all_, ADAPTER, ())
        keeper.set_desired(OTHER, "m2", all_[:1], Adapter("b", "s3://1"), ())
        await until(lambda: len(world.calls) == 3)
        world.hanging.clear()
        async with asyncio.timeout(60):
            await keeper.release(lambda key: key == KEY)
        assert {state.model for state in keeper.states()} == {OTHER}
        await world.until("loaded", 1)
    assert world.loras == {all_[0].url: {"b": "s3://1"}}


async def test_a_pending_unload_is_done_when_the_worker_recovers():
    async with loaded(2) as (world, keeper, all_):
        world.broken = {all_[0].url}
        keeper.set_desired(KEY, "m1", all_, None, ("a",))
        await world.until("unloaded", 1)
        await world.until("failed", 1)
        assert [each.worker.pod for each in keeper.unload_deleted(model(), ("a",))] == ["pod-0"]
        world.broken.clear()
        await world.until("unloaded", 2)
        await asyncio.sleep(0)
        assert not list(keeper.states())
    assert not any(world.loras.values())


async def test_a_pending_unload_of_a_deleted_pod_is_forgotten():
    async with loaded() as (world, keeper, (worker,)):
        world.broken = {worker.url}
        assert keeper.unload_deleted(model(), ("a",))
        keeper.pod_gone(worker.uid)
        assert not list(keeper.states())


async def test_a_pending_unload_is_not_reported_for_another_model_of_the_same_name():
    """A deleted model that was created again has the same key, but nothing happened to it."""
    async with loaded() as (world, keeper, (worker,)):
        world.broken = {worker.url}
        keeper.set_desired(KEY, "m1", [worker], None, ("a",))
        await world.until("failed", 1)
        keeper.unload_deleted(model(), ("a",))
        world.models[KEY] = model("m3")
        world.broken.clear()
        world.reported.clear()
        await until(lambda: not list(keeper.states()))
        assert world.loras[worker.url] == {}
        assert world.reported == []


async def test_pending_unloads_on_other_workers_are_not_checked() -> None:
    """A tenant whose worker hangs may delete thousands of models: each was checked for all workers of others."""

    class Uid(str):
        asked = 0

        def __hash__(self) -> int:
            Uid.asked += 1
            return super().__hash__()

    world, (elsewhere, worker) = World(), workers(2)
    async with keeping(world) as keeper:
        uid = Uid("deleted")
        keeper.set_desired(KEY, uid, [elsewhere], ADAPTER, ())
        assert keeper.unload_deleted(model(uid), ("a",))
        Uid.asked = 0
        keeper.set_desired(OTHER, "m2", [worker], ADAPTER, ())
        assert Uid.asked == 0


async def test_a_pending_unload_that_takes_too_long_is_abandoned_and_reported():
    async with loaded(unload_later=100.0) as (world, keeper, (worker,)):
        world.broken = {worker.url}
        deleted = model()
        deleted["metadata"]["annotations"] = {"large": "x"}
        keeper.unload_deleted(deleted, ("a",))
        await world.until("failed", 1)
        world.now = 100.0
        await world.until("CleanupFailed", 1)
        assert not list(keeper.states())
    # Users may delete many models within that time, and each may be large: the keeper keeps only what the Event names.
    assert world.last == model()


async def test_a_new_model_of_the_same_adapter_name_does_the_pending_unload():
    async with loaded() as (world, keeper, (worker,)):
        world.broken = {worker.url}
        keeper.unload_deleted(model(), ("a",))
        await world.until("failed", 1)
        world.reported.clear()
        world.calls.clear()
        world.broken.clear()
        keeper.set_desired(OTHER, "m2", [worker], Adapter("a", "s3://2"), ())
        await world.until("loaded", 1)
        assert world.loras[worker.url] == {"a": "s3://2"}
        # The first request unloads it, before it is loaded and not after.
        methods = [method for method, _ in world.calls]
        assert methods.index("DELETE") < methods.index("POST")
        assert methods.count("DELETE") == 1


async def test_a_restarted_container_is_asked_again():
    async with loaded() as (world, keeper, (worker,)):
        world.loras.clear()
        world.reported.clear()
        keeper.set_desired(KEY, "m1", [replace(worker, incarnation="main:1")], ADAPTER, ())
        await world.until("loaded", 1)
    assert world.loras[worker.url] == {"a": "s3://1"}


async def test_a_lost_adapter_is_reported_before_it_is_loaded_again() -> None:
    async with loaded(probe_interval=0.1) as (world, keeper, (worker,)):
        world.loras.clear()
        world.changed.clear()
        async with asyncio.timeout(60):
            await world.changed.wait()
            (state,) = keeper.states()
            assert (state.loaded, world.loras) == (False, {})
            world.reported.clear()
            await world.until("loaded", 1)
    assert world.loras[worker.url] == {"a": "s3://1"}


async def test_all_kept_listings_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand workers that list names of their own used up the memory of model-discovery."""
    world, all_ = World(), workers(3)
    for each in all_:
        world.loras[each.url] = {"n" * 1000: ""}
    monkeypatch.setattr(keeper_module, "MAX_LISTED_BYTES", 2 * (1000 + NAME_BYTES + len(ADAPTER.name) + NAME_BYTES))
    async with keeping(world) as keeper:
        keeper.set_desired(KEY, "m1", all_, ADAPTER, ())
        await world.until("loaded", 3)
        assert len(keeper._listings) == 2
        for uid in tuple(keeper._listings):
            keeper.pod_gone(uid)
        assert keeper._listed_bytes == 0


async def test_the_listings_kept_for_a_worker_are_bounded() -> None:
    world, all_ = World(), workers(3)
    world.loras[all_[0].url] = {f"n-{number}": "" for number in range(MAX_LISTED_NAMES + 1)}
    world.loras[all_[1].url] = {"n" * (MAX_LISTED_CHARACTERS + 1): ""}
    async with keeping(world) as keeper:
        keeper.set_desired(KEY, "m1", all_, ADAPTER, ())
        await world.until("loaded", 3)
        assert list(keeper._listings) == ["uid-2"]
        # One listing for each worker, however often its containers restart.
        for restarts in range(1, 4):
            world.reported.clear()
            keeper.set_desired(KEY, "m1", [replace(each, incarnation=f"main:{restarts}") for each in all_], ADAPTER, ())
            await world.until("loaded", 3)
        assert {uid: kept[0] for uid, kept in keeper._listings.items()} == {"uid-2": "main:3"}
        keeper.pod_gone("uid-2")
        assert keeper._listings == {}
