"""ModelReconciler: one row for each state of a DynamoModel and its workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from dynamo_model_discovery.lora.adapter import Adapter, AdapterRecord, record_of, written
from dynamo_model_discovery.lora.keeper import AdapterKeeper, WorkerModel
from dynamo_model_discovery.lora.responses import LoraError
from dynamo_model_discovery.lora.settle import settle
from dynamo_model_discovery.models.status import ENDPOINTS_READY
from dynamo_model_discovery.reconcilers.model import FINALIZER, LIMIT_RETRY, REPORT_AFTER, ModelReconciler
from dynamo_model_discovery.routing import index
from dynamo_shared.api import objects
from dynamo_shared.api.base_models import base_model_hash
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import LOADED_ADAPTER
from dynamo_shared.api.resources import DYNAMO_MODELS, ENDPOINT_SLICES, PODS, ObjectKey
from dynamo_shared.kube.errors import Conflict, NotFound
from dynamo_shared.runtime import Result, WorkQueue
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.settings.model_discovery import ModelDiscovery
from dynamo_shared.runtime.status_writer import SETTLE, StatusWriter
from dynamo_shared.state.cache import ObjectCache

from tests.building.clock import ManualClock
from tests.building.memory_kube import MemoryKube
from tests.building.objects import object_of
from tests.building.tables import table
from tests.building.waiting import with_turns
from tests.unit.announced import Announced

from .memory_workers import MemoryWorkers

BASE, NAME, URI = "Qwen/Qwen3-0.6B", "org/support", "s3://adapters/support/v1"
HASH = base_model_hash(BASE)
A, B = "http://10.0.0.1:9090", "http://10.0.0.2:9090"
WITHIN = 30.0


def model(
    name: str = "support",
    record: AdapterRecord | None = None,
    *,
    metadata: Any = None,
    type_: str = "lora",
    **spec: Any,
) -> KubeObject:
    """A DynamoModel, by default an adapter; `record` is its annotation of loaded adapters."""
    known = {"finalizers": [FINALIZER], "annotations": {LOADED_ADAPTER: written(record)}} if record else {}
    adapter = {"modelName": NAME, "source": {"uri": URI}} if type_ == "lora" else {"modelName": BASE}
    return {
        **DYNAMO_MODELS.type_meta,
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-of-{name}", **known, **(metadata or {})},
        "spec": {"baseModelName": BASE, "modelType": type_, **adapter, **spec},
    }


def leaving(record: AdapterRecord | None = None, **spec: Any) -> KubeObject:
    """A model that is being deleted."""
    return model(record=record, metadata={"deletionTimestamp": "x", "finalizers": [FINALIZER]}, **spec)


def workers(*ready: bool) -> list[KubeObject]:
    """Pods a, b, ... of the base model, ready or not, and the EndpointSlice of their Service."""
    of_base = {labels.BASE_MODEL_HASH: HASH}
    pods: list[KubeObject] = []
    endpoints: list[KubeObject] = []
    for number, (name, is_ready) in enumerate(zip("abc", ready, strict=False), 1):
        address, conditions = f"10.0.0.{number}", [{"type": "Ready", "status": str(is_ready)}]
        status = {"phase": "Running", "podIP": address, "conditions": conditions}
        pods.append(object_of(PODS, name, labels=of_base, status=status))
        endpoints.append({"addresses": [address], "targetRef": {"kind": "Pod", "name": name}})
    service = {"kubernetes.io/service-name": "dynamo-model", **of_base}
    return [*pods, object_of(ENDPOINT_SLICES, "s", labels=service, endpoints=endpoints)]


ONE, TWO = workers(True), workers(True, True)


class World:
    """The reconciler with an API server and workers in memory. `busy` workers have not answered yet."""

    @classmethod
    def of(cls, *observed: KubeObject, **given: Any) -> Callable[[], World]:
        """A factory for a row of a table."""
        return partial(cls, *observed, **given)

    def __init__(
        self,
        *observed: KubeObject,
        have: Mapping[str, Mapping[str, str]] | None = None,
        busy: Iterable[str] = (),
        broken: Iterable[str] = (),
        without_lora: Iterable[str] = (),
        loads: int = 50_000,
    ) -> None:
        self.kube, self.cache, self.clock = MemoryKube(*observed), ObjectCache(), ManualClock()
        index(self.cache)
        self.kube.publish(self.cache)
        loras = {url: dict(each) for url, each in (have or {}).items()}
        self.workers = MemoryWorkers(loras, broken=set(broken), without_lora=set(without_lora))
        self.busy, self.announced = set(busy), Announced()
        metrics, settings = Metrics(), ModelDiscovery(unload_within=WITHIN, loads_per_namespace=loads)
        queues: tuple[WorkQueue[WorkerModel], WorkQueue[WorkerModel]] = (
            WorkQueue(metrics=metrics.queue("first")),
            WorkQueue(metrics=metrics.queue("second")),
        )
        self.keeper = AdapterKeeper(
            self.workers,
            settings,
            *queues,
            self.announced,
            model=partial(self.cache.get_by_uid, DYNAMO_MODELS),
            may=lambda _: True,
            changed=lambda _: None,
            clock=self.clock,
        )
        kube: Any = self.kube
        statuses = StatusWriter(kube, self.cache, self.clock)
        now = partial(datetime, 2026, 1, 2, tzinfo=UTC)
        self.reconciler = ModelReconciler(
            kube, self.cache, statuses, self.keeper, self.announced, settings, self.clock, now
        )

    async def reconcile(self, name: str = "support") -> Result:
        return await self.reconciler.reconcile(ObjectKey("ns", name))

    async def work(self) -> None:
        """Do the pending work of all workers that answer, once."""
        for state in self.keeper.states():
            if not (state.settled or state.idle or state.worker.url in self.busy):
                try:
                    await settle(self.workers, state, self.clock)
                except LoraError as error:
                    state.failed(str(error), state.version)

    async def converge(self) -> None:
        """Reconcile all models and do the workers' work until nothing changes."""
        for _ in range(8):
            for key in sorted(self.cache.keys(DYNAMO_MODELS)):
                await self.reconcile(key.name)
            await self.work()
            self.clock.now += SETTLE

    async def outcome(self, name: str = "support") -> str:
        """The model's status, its Events, whether its finalizer holds it, and the adapters on its workers."""
        reasons = " ".join(line.split()[1] for line in self.announced.lines)
        loaded = [
            f"{pod} has {', '.join(sorted(self.workers.loras.get(url) or ()))}" for pod, url in (("a", A), ("b", B))
        ]
        parts = [reasons, await self.held(name), *(each for each in loaded if not each.endswith("has "))]
        if status := (self.cache.get(DYNAMO_MODELS, ObjectKey("ns", name)) or {}).get("status"):
            reason = (objects.condition({"status": status}, ENDPOINTS_READY) or {})["reason"]
            parts.insert(0, f"{status['readyEndpoints']}/{status['totalEndpoints']} {reason}")
        return "; ".join(filter(None, parts))

    async def held(self, name: str) -> str:
        try:
            observed = await self.kube.get(DYNAMO_MODELS, ObjectKey("ns", name))
        except NotFound:
            assert self.cache.get(DYNAMO_MODELS, ObjectKey("ns", name)) is None
            return "gone"
        record = record_of(observed)
        names = " ".join((record.name, *record.previous)) if record else "no adapter"
        return f"held for {names}" if FINALIZER in observed["metadata"].get("finalizers", ()) else ""


def loaded(name: str = NAME, uri: str = URI, *previous: str) -> AdapterRecord:
    return AdapterRecord(name, Adapter(name, uri).source, previous)


HAVE = {A: {NAME: URI}, B: {NAME: URI}}
OLDER = {"creationTimestamp": "2025-01-01T00:00:00Z"}
GONE = {"deletionTimestamp": "x", "finalizers": ["kept"]}
SERVED = f"1/1 AllEndpointsReady; NotReady EndpointsReady; held for {NAME}; a has {NAME}"
TAKEN = "0/1 NameTaken; NameTaken"


@table(
    {
        "a base model": (World.of(model(type_="base"), *TWO), "2/2 EndpointsDiscovered; EndpointsReady"),
        "one of another type": (World.of(model(type_="adapter"), *ONE), "1/1 EndpointsDiscovered; EndpointsReady"),
        "a base model that was an adapter": (
            World.of(model(record=loaded(), type_="base"), *TWO, have=HAVE),
            "2/2 EndpointsDiscovered; EndpointsReady; held for no adapter",
        ),
        "a base model without workers": (World.of(model(type_="base")), "0/0 NoEndpoints; NoEndpointsFound"),
        "an adapter": (
            World.of(model(), *TWO),
            f"2/2 AllEndpointsReady; NotReady EndpointsReady; held for {NAME}; a has {NAME}; b has {NAME}",
        ),
        "an adapter without workers": (World.of(model()), f"0/0 NoEndpoints; NoEndpointsFound; held for {NAME}"),
        "a worker is busy": (
            World.of(model(), *TWO, busy=[B]),
            f"1/2 NotReady; NotReady; held for {NAME}; a has {NAME}",
        ),
        "a worker fails": (
            World.of(model(), *TWO, broken=[B]),
            f"1/2 NotReady; NotReady PartialEndpointFailure; held for {NAME}; a has {NAME}",
        ),
        "a worker is not ready": (World.of(model(), *workers(True, False)), SERVED),
        "another source": (World.of(model(record=loaded(uri="s3://old")), *ONE, have={A: {NAME: "s3://old"}}), SERVED),
        "another name": (World.of(model(record=loaded("old")), *ONE, have={A: {"old": URI}}), SERVED),
        "another name, and a worker keeps the former": (
            World.of(model(record=loaded("old")), *TWO, have={A: {"old": URI}, B: {"old": URI}}, broken=[B]),
            f"1/2 NotReady; NotReady PartialEndpointFailure; held for {NAME} old; a has {NAME}; b has old",
        ),
        "not a source": (
            World.of(model(source={"uri": "https://example.com/a"}), *ONE),
            "0/1 InvalidSource; InvalidSource",
        ),
        "not a source any more": (
            World.of(model(record=loaded(), source={"uri": ""}), *ONE, have=HAVE),
            f"0/1 InvalidSource; InvalidSource; held for {NAME}; a has {NAME}; b has {NAME}",
        ),
        "an older model asks for the name": (World.of(model(), model("older", metadata=OLDER), *ONE), TAKEN),
        "a younger model asks for the name": (World.of(model(metadata=OLDER), model("younger"), *ONE), SERVED),
        "a younger model has loaded the name": (
            World.of(model(metadata=OLDER), model("younger", loaded()), *ONE),
            TAKEN,
        ),
        "a renamed model may have the name yet": (
            World.of(model(), model("renamed", loaded("new", URI, NAME), modelName="new"), *ONE),
            TAKEN,
        ),
        "a model that leaves may have the name yet": (
            World.of(model(), model("other", loaded(), metadata={"deletionTimestamp": "x"}), *ONE),
            TAKEN,
        ),
        "a model has left the name": (World.of(model(), model("other", loaded(), metadata=GONE), *ONE), SERVED),
        "another model has the new name, and the former one is let go": (
            World.of(model(record=loaded("old")), model("other", loaded()), *ONE, have={A: {"old": URI, NAME: URI}}),
            f"{TAKEN}; held for no adapter; a has {NAME}",
        ),
        "another model has the new name, and a worker keeps the former": (
            World.of(model(record=loaded("old")), model("other", loaded()), *ONE, have={A: {"old": URI}}, busy=[A]),
            f"{TAKEN}; held for old; a has old",
        ),
    }
)
async def test_a_model_in_each_state(given, outcome):
    world = given()
    for _ in range(2):
        await world.reconcile()
        await world.work()
        world.clock.now += SETTLE
    assert await world.reconcile() == Result()
    assert await world.outcome() == outcome
    assert all(uri == URI for each in world.workers.loras.values() for uri in each.values())
    # A model creates no objects: the pod-builder creates the Services of base models.
    assert set(world.kube.writes) <= {"patch DynamoModel support"}


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (model("first", loaded()), f"{NAME!r} is taken by DynamoModel 'first'"),
        # It has loaded nothing yet, and owns the name only by its age.
        (model("first"), f"{NAME!r} is taken by DynamoModel 'first'"),
        (model("first", loaded("new", URI, NAME), modelName="new"), f"{NAME!r} was loaded for DynamoModel 'first'"),
    ],
)
async def test_the_event_of_a_taken_name_says_which_model_has_it(other, says):
    world = World(model(), other, *ONE)
    await world.reconcile()
    (fact,) = world.announced.facts
    assert says in fact.message


@table(
    {
        "unloaded": (World.of(leaving(loaded()), *TWO, have=HAVE), "LoRAUnloaded; gone"),
        "unloaded by all its names": (
            World.of(leaving(loaded(NAME, URI, "old")), *ONE, have={A: {"old": URI, "others": URI}}),
            "LoRAUnloaded; gone; a has others",
        ),
        "loaded by the reference operator, which remembers nothing": (
            World.of(leaving(), *ONE, have={A: {NAME: URI}}),
            "LoRAUnloaded; gone",
        ),
        "a base model": (World.of(leaving(type_="base"), *ONE), "gone"),
        "its workers are gone": (World.of(leaving(loaded())), "gone"),
        "its worker cannot load adapters": (World.of(leaving(loaded()), *ONE, without_lora=[A]), "LoRAUnloaded; gone"),
        "its worker is not ready": (
            World.of(leaving(loaded()), *workers(False), have={A: {NAME: URI}}),
            "LoRAUnloaded; gone",
        ),
        "another model has taken over the name": (
            World.of(leaving(loaded()), model("other", loaded()), *ONE, have={A: {NAME: URI}}),
            f"gone; a has {NAME}",
        ),
        "a worker fails": (
            World.of(leaving(loaded()), *TWO, have=HAVE, broken=[B]),
            f"0/2 Unloading; PartialEndpointFailure Unloading; held for {NAME}; b has {NAME}",
        ),
        "a worker is busy": (
            World.of(leaving(loaded()), *ONE, have={A: {NAME: URI}}, busy=[A]),
            f"held for {NAME}; a has {NAME}",
        ),
    }
)
async def test_a_model_that_is_being_deleted_in_each_state(given, outcome):
    world = given()
    await world.reconcile()
    await world.work()
    reconciled = await world.reconcile()
    assert await world.outcome() == outcome
    # While workers fail, the Event is a warning.
    assert all(line.startswith("Warning") for line in world.announced.lines if "Unloading" in line)
    wait = None if "gone" in outcome else WITHIN if "Unloading" in outcome else REPORT_AFTER
    assert reconciled == Result(wait)


@table(
    {
        "it is leaving": (World.of(leaving(loaded()), *TWO, have=HAVE), "2 unloaded; gone"),
        "its name is taken": (
            World.of(model(record=loaded("old")), model("other", loaded()), *ONE, have={A: {"old": URI, NAME: URI}}),
            "1 unloaded; held for no adapter",
        ),
    }
)
async def test_a_write_conflict_sends_no_second_request_to_workers(given, outcome):
    world, key = given(), ObjectKey("ns", "support")
    await world.reconcile()
    await world.work()
    observed = await world.kube.get(DYNAMO_MODELS, key)
    world.kube.put({**observed, "metadata": {**observed["metadata"], "labels": {"of": "another"}}})
    with pytest.raises(Conflict):
        await world.reconcile()
    world.kube.publish(world.cache)
    await world.reconcile()
    await world.work()
    await world.reconcile()
    assert f"{world.workers.count('DELETE')} unloaded; {await world.held('support')}" == outcome


async def test_a_slow_unload_is_reported_and_continues_after_the_model_is_deleted():
    world = World(leaving(loaded()), *ONE, have={A: {NAME: URI}}, busy=[A])
    assert await world.reconcile() == Result(REPORT_AFTER)
    world.clock.now += REPORT_AFTER
    assert await world.reconcile() == Result(WITHIN - REPORT_AFTER)
    assert await world.outcome() == f"0/1 Unloading; Unloading; held for {NAME}; a has {NAME}"
    assert world.announced.facts[-1].type == "Normal"
    world.clock.now = WITHIN
    assert await world.reconcile() == Result()
    assert await world.outcome() == f"Unloading LoRAUnloadFailed; gone; a has {NAME}"
    assert world.announced.facts[-1].message.startswith(f"{NAME} is or may be loaded at a: no answer yet")
    # The unload is still pending.
    world.busy.clear()
    await world.work()
    assert not any(world.workers.loras.values())


@pytest.mark.parametrize("metadata", [{"deletionTimestamp": "x", "finalizers": ["kept"]}, {}], ids=["leaving", "read"])
async def test_a_model_with_a_foreign_finalizer_and_one_without_a_spec_are_left_alone(metadata):
    obj = model(metadata=metadata)
    if not metadata:
        del obj["spec"]
    world = World(obj, *ONE)
    assert await world.reconcile() == Result()
    assert (await world.outcome(), world.kube.writes) == ("", [])


async def test_a_model_that_was_deleted_meanwhile_loads_nothing():
    world = World(model(), *ONE)
    world.kube.remove(DYNAMO_MODELS, ObjectKey("ns", "support"))
    assert await world.reconcile() == Result()
    await world.work()
    assert await world.outcome() == "gone"
    assert await world.reconcile() == Result()


@pytest.mark.parametrize(("owned", "left"), [(True, 0), (False, 1)])
async def test_pending_unloads_of_a_deleted_model_belong_to_its_owner(owned, left):
    world = World(model(), *ONE)
    await world.converge()
    world.reconciler.gone(model(record=loaded()), owned=owned)
    await world.work()
    assert len(world.workers.loras[A]) == left
    assert world.announced.events[-1] == "deleted"


async def test_a_deleted_model_of_another_replica_without_workers_leaves_no_state():
    world = World(model())
    await world.reconcile()
    world.keeper.disown()
    world.reconciler.gone(model(record=loaded()), owned=False)
    assert not world.keeper._models


async def test_failures_are_announced_by_reason_and_readiness_when_it_changes():
    c = "http://10.0.0.3:9090"
    world = World(model(), *workers(True, True, True), broken=[A], busy=[B, c])

    async def news() -> list[str]:
        before = len(world.announced.lines)
        await world.reconcile()
        await world.work()
        for _ in range(2):
            await world.reconcile()
            world.clock.now += SETTLE
        return [line.split()[1] for line in world.announced.lines[before:]]

    assert await news() == ["NotReady", "PartialEndpointFailure"]
    world.workers.broken.clear()
    assert await news() == [], "it is over, and others are busy"
    world.busy, world.workers.broken = {c}, {B}
    assert await news() == ["PartialEndpointFailure"], "again"
    world.busy, world.workers.broken = set(), {B, c}
    assert await news() == [], "the same reason at one more"
    world.workers.said = "no route"
    assert await news() == ["PartialEndpointFailure"]
    world.workers.broken.clear()
    assert await news() == ["EndpointsReady"]
    for left, expected in ((workers(True, True, False), []), (workers(False, False, False), ["NoEndpointsFound"])):
        for obj in left:
            world.kube.put(obj)
        world.kube.publish(world.cache)
        assert await news() == expected
    assert world.announced.events == ["notready", "ready", "notready"]


async def test_two_models_may_swap_their_adapter_names():
    one, two = (model(name, loaded(name), modelName=other) for name, other in (("one", "two"), ("two", "one")))
    world = World(one, two, *ONE, have={A: {"one": URI, "two": URI}})
    await world.converge()
    assert [(await world.outcome(name)).partition(";")[0] for name in ("one", "two")] == ["1/1 AllEndpointsReady"] * 2
    assert world.workers.loras[A] == {"one": URI, "two": URI}
    assert world.workers.count("POST") == 2


async def test_other_tasks_run_while_the_slices_of_a_model_are_read() -> None:
    """Anyone may create hundreds of slices, each with a thousand endpoints."""
    labelled = {labels.BASE_MODEL_HASH: HASH}
    endpoints = [{"addresses": ["10.0.0.9"], "targetRef": {"kind": "Pod", "name": "none"}}]
    slices = [object_of(ENDPOINT_SLICES, f"s{number}", labels=labelled, endpoints=endpoints) for number in range(20)]
    world = World(model(), *TWO, *slices)
    _, turns = await with_turns(world.reconcile())
    assert turns > len(slices)
    assert len(list(world.keeper.states())) == 2


async def test_a_model_that_is_deleted_while_its_slices_are_read_is_left_alone() -> None:
    world = World(model(), *TWO)
    reconcile = asyncio.create_task(world.reconcile())
    await asyncio.sleep(0)
    world.cache.remove(DYNAMO_MODELS, ObjectKey("ns", "support"), "uid-of-support")
    assert await reconcile == Result()
    assert not list(world.keeper.states())
    assert not world.kube.writes


async def test_the_adapters_of_a_namespace_are_limited() -> None:
    """Ten thousand models on forty workers used up the memory of model-discovery."""
    world = World(model(), model("younger", modelName="other"), *TWO, loads=3)
    await world.converge()
    assert (await world.outcome()).startswith("2/2 AllEndpointsReady")
    assert "0/2 TooManyAdapters; " in await world.outcome("younger")
    assert await world.held("younger") == ""
    (warning,) = [line for line in world.announced.lines if "TooManyAdapters" in line]
    assert warning.startswith(
        "Warning TooManyAdapters Reconcile: the adapters of this namespace are on 2 workers in total"
    )
    assert (await world.reconcile("younger")).requeue_after == LIMIT_RETRY

    await world.kube.delete(DYNAMO_MODELS, ObjectKey("ns", "support"))
    world.cache.put(DYNAMO_MODELS, await world.kube.get(DYNAMO_MODELS, ObjectKey("ns", "support")))
    await world.converge()
    assert await world.held("support") == "gone"
    assert "2/2 AllEndpointsReady" in await world.outcome("younger")
