"""The shell of a service: what it queues when its share changes, how it spreads a resync, what counts as an error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from dynamo_shared.api import namespace_scope
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DEPLOYMENTS, LEASES, ObjectKey, Resource
from dynamo_shared.kube.errors import Conflict, Forbidden, Invalid, KubeError, NamespaceTerminating, Unavailable
from dynamo_shared.leases import AllKeys
from dynamo_shared.leases.rendezvous import partition_of
from dynamo_shared.runtime import Controller, Result, ServiceContext, own_writes
from dynamo_shared.runtime import controller as controllers
from dynamo_shared.runtime.routes import CacheChange, Reconciler, TaskRoute
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state.versions import version_of
from opentelemetry.sdk.trace import TracerProvider

from tests.building.clock import ManualClock
from tests.building.memory_kube import MemoryKube
from tests.building.waiting import until
from tests.unit.runtime.serving import SERVICE, deployment, said, served

# At the end of the process nothing is left to send, and a provider kept for that would run in each child process.
TRACER = TracerProvider(shutdown_on_exit=False).get_tracer("test")


@pytest.fixture(autouse=True)
def claims_are_checked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controllers, "LEASE_INTERVAL", 0.01)


class Share(AllKeys):
    """All keys except those of some namespaces."""

    is_shared = True

    def __init__(self) -> None:
        super().__init__()
        self.without: set[str] = set()

    def owns(self, key: ObjectKey) -> bool:
        return key.namespace not in self.without

    def lose(self, namespace: str) -> None:
        self.without.add(namespace)
        self._report_loss()

    async def give(self, namespace: str) -> None:
        self.without.add(namespace)
        for each in self._drainers:
            await each(lambda key: key.namespace == namespace)


class Deployments(Controller):
    """Reconciles Deployments as the test defines."""

    def __init__(self, context: ServiceContext) -> None:
        super().__init__(context, SERVICE, [DEPLOYMENTS])
        self.answers: dict[str, Exception] = {}
        self.reconciled: list[ObjectKey] = []
        self.waiting = 0
        """reconciles that wait for `go`"""
        self.go = asyncio.Event()
        self.go.set()
        self.wire(
            {DEPLOYMENTS.plural: Reconciler(self.reconcile, lambda: self.cache.keys(DEPLOYMENTS))},
            [TaskRoute(DEPLOYMENTS)],
        )

    async def reconcile(self, key: ObjectKey) -> Result:
        self.waiting += 1
        await self.go.wait()
        self.waiting -= 1
        self.reconciled.append(key)
        if (error := self.answers.get(key.name)) is not None:
            raise error
        return Result()


def chances() -> Callable[[], float]:
    """0.0, 0.1, ... 0.9, repeated."""
    numbers = (number / 10 for _ in iter(int, 1) for number in range(10))
    return lambda: next(numbers)


@asynccontextmanager
async def controlling(
    keys: Iterable[ObjectKey], share: Share | None = None, kube: MemoryKube | None = None
) -> AsyncIterator[Deployments]:
    """A controller that has reconciled everything once."""
    keys, clock = tuple(keys), ManualClock()
    async with served(keys, Deployments, share or Share(), kube, clock=clock, randomness=chances()) as (controller, _):
        await until(lambda: len(controller.reconciled) == len(keys))
        controller.reconciled.clear()
        yield controller


def task(namespace: str, name: str = "a") -> Task:
    return Task(DEPLOYMENTS.plural, ObjectKey(namespace, name))


async def test_traces_of_deleted_keys_are_forgotten() -> None:
    share = Share()
    async with controlling([], share) as controller:
        with TRACER.start_as_current_span("change"):
            for namespace in ("given", "lost", "kept"):
                controller.enqueue(task(namespace), 60)
        assert len(controller._causes) == 3
        await share.give("given")
        share.lose("lost")
        assert set(controller._causes) == {task("kept")}


async def test_keys_are_given_away_after_state_has_the_writes() -> None:
    """The next owner acted on older objects: budgets were exceeded by what the last write had taken."""
    share, key = Share(), ObjectKey("given", "a")
    async with controlling([key], share) as controller:
        controller.go.clear()
        controller.enqueue(task("given"))
        await until(lambda: controller.waiting)
        given_away = asyncio.create_task(share.give("given"))
        await asyncio.sleep(0)
        written = deployment(key)
        written["metadata"]["resourceVersion"] = "2"
        controller.cache.put(DEPLOYMENTS, written)
        controller.go.set()
        await until(lambda: controller.reconciled == [key])
        for _ in range(10):
            await asyncio.sleep(0)
        assert not given_away.done()
        said(controller, DEPLOYMENTS, written)
        async with asyncio.timeout(10):
            await given_away


async def test_keys_are_given_away_although_state_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_writes, "CONFIRMED_WITHIN", 0.0)
    share, key = Share(), ObjectKey("given", "a")
    async with controlling([], share) as controller:
        controller.cache.put(DEPLOYMENTS, deployment(key))
        await share.give("given")
        assert controller.cache.is_written(DEPLOYMENTS, key)


async def test_a_replica_stops_after_state_has_the_writes() -> None:
    """At an upgrade, the next owner starts as soon as this one has stopped."""
    key = ObjectKey("ns", "a")
    written = deployment(key)
    written["metadata"]["resourceVersion"] = "2"

    async def writes_at_the_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            controller.cache.put(DEPLOYMENTS, written)
            publisher.put(DEPLOYMENTS, written)

    def made(context: ServiceContext) -> Deployments:
        made = Deployments(context)
        made.wire({}, background={"writer": writes_at_the_end})
        return made

    async with served([key], made, Share()) as (controller, publisher):
        pass
    assert controller.cache.get(DEPLOYMENTS, key) == written
    assert not controller.cache.is_written(DEPLOYMENTS, key)


async def test_a_single_replica_stops_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other one acts on older objects, and the watcher may stop together with it."""
    monkeypatch.setattr(own_writes, "CONFIRMED_WITHIN", 3600.0)
    key = ObjectKey("ns", "a")
    async with asyncio.timeout(60), served([], Deployments, AllKeys()) as (controller, _):
        controller.cache.put(DEPLOYMENTS, deployment(key))
    assert controller.cache.is_written(DEPLOYMENTS, key)


async def test_gained_partitions_reconcile_only_their_own_keys() -> None:
    """A replica that gains one of 32 partitions has reconciled the others already."""
    share, keys = Share(), [ObjectKey(namespace, "a") for namespace in ("team-0", "team-1", "team-3")]
    async with controlling(keys, share) as controller:
        share._report_gain(frozenset({partition_of(keys[1])}))
        await until(lambda: controller.reconciled)
        assert not controller._queue
        assert controller.reconciled == [keys[1]]


async def test_a_resync_is_spread_over_time() -> None:
    """Ten thousand graphs at once would block those that users wait for."""
    keys = [ObjectKey("ns", f"graph-{number}") for number in range(10)]
    async with controlling(keys) as controller:
        controller.enqueue_all(within=100.0)
        assert sorted(controller._queue._due.values()) == [10.0 * number for number in range(1, 10)]
        await until(lambda: len(controller.reconciled) == 1)


async def test_a_conflict_does_not_count_as_an_error() -> None:
    """Another writer was faster, as optimistic concurrency allows, and the next attempt succeeds."""
    async with controlling([]) as controller:
        controller.answers = {
            "conflict": Conflict(409, "Conflict", "the object has been modified"),
            "refused": Invalid(422, "Invalid", "no"),
        }
        for name in controller.answers:
            controller.enqueue(task("ns", name))
        await until(lambda: len(controller.reconciled) == 2)
        value = controller.context.metrics.registry.get_sample_value
        labels = {"resource_type": "deployments", "namespace": "ns"}

        def reconciles(result: str) -> float | None:
            return value("dynamo_operator_reconcile_total", {**labels, "result": result})

        def errors(kind: str) -> float | None:
            return value("dynamo_operator_reconcile_errors_total", {**labels, "error_type": kind})

        await until(lambda: reconciles("conflict") and reconciles("error"))
        assert (reconciles("conflict"), reconciles("error")) == (1, 1)
        assert (errors("conflict"), errors("validation")) == (None, 1)
        assert {each.key.name for each in controller._queue._due} == set(controller.answers), "both come back"


async def test_an_object_of_a_deleted_namespace_is_not_retried() -> None:
    async with controlling([]) as controller:
        controller.answers = {"a": NamespaceTerminating(403, "Forbidden", "namespace ns is being terminated")}
        controller.enqueue(task("ns", "a"))
        labels = {"resource_type": "deployments", "namespace": "ns", "result": "success"}
        value = controller.context.metrics.registry.get_sample_value
        await until(lambda: value("dynamo_operator_reconcile_total", labels) == 1)
        assert not controller._queue._due


async def test_a_failing_route_does_not_block_other_routes() -> None:
    def broken(_: CacheChange) -> list[Task]:
        raise KeyError("spec")

    async with controlling([]) as controller:
        reconciler = {DEPLOYMENTS.plural: Reconciler(controller.reconcile, lambda: ())}
        controller.wire(reconciler, [TaskRoute(DEPLOYMENTS, to=broken), TaskRoute(DEPLOYMENTS)])
        key = ObjectKey("ns", "a")
        said(controller, DEPLOYMENTS, deployment(key))
        await until(lambda: controller.reconciled == [key])


async def test_a_namespace_with_a_deleted_claim_is_taken_only_after_a_while() -> None:
    """When a leader of the other platform stops, the next one writes its Lease some moments later."""
    key = ObjectKey("team", "a")
    lease = namespace_scope.lease("team", "1.2.0", 30.0, datetime.now(UTC))
    async with controlling([key]) as controller:
        clock = cast("ManualClock", controller.context.clock)
        for version in ("1", "2"):
            lease["metadata"] |= {"uid": version, "resourceVersion": version}
            said(controller, LEASES, lease)
            controller.cache.remove(LEASES, ObjectKey("team", namespace_scope.NAME), version)
            clock.now += controllers.HANDOVER - 1
            controller.enqueue(task("team"))
            await asyncio.sleep(0.05)
            assert controller.is_held("team")
            assert controller.reconciled == []
        clock.now += 2
        await until(lambda: controller.reconciled == [key])
        assert not controller.is_held("team")


def renewed(kube: MemoryKube, seconds: float, apart: timedelta = timedelta(minutes=-10)) -> KubeObject:
    """The claim of another platform, whose clock differs, as the API server stores a renewal."""
    return kube.put(
        namespace_scope.lease("team", "1.2.0", 30.0, datetime.now(UTC) + apart + timedelta(seconds=seconds))
    )


@pytest.mark.parametrize("apart", [timedelta(minutes=-10), timedelta(minutes=10)], ids=["behind", "ahead"])
async def test_a_renewed_claim_counts_even_if_clocks_differ(apart: timedelta) -> None:
    """Otherwise two platforms would act on one namespace and undo each other's work."""
    key, kube = ObjectKey("team", "a"), MemoryKube()
    async with controlling([key], kube=kube) as controller:
        clock = cast("ManualClock", controller.context.clock)
        said(controller, LEASES, renewed(kube, 0, apart))
        # It may be a day old.
        await until(lambda: controller.reconciled == [key])
        controller.reconciled.clear()
        for number in (1, 2):
            clock.now += 29
            said(controller, LEASES, renewed(kube, number * 10, apart))
            assert controller.is_held("team")
        controller.enqueue(task("team"))
        await asyncio.sleep(0.05)
        assert controller.reconciled == []
        clock.now += 30
        await until(lambda: controller.reconciled == [key])
        assert not controller.is_held("team")


async def test_a_claim_ends_only_if_the_api_server_has_no_renewal_of_it() -> None:
    """While NATS or the watcher was unavailable, two platforms acted on one namespace."""
    key, kube = ObjectKey("team", "a"), MemoryKube()
    async with controlling([key], kube=kube) as controller:
        clock = cast("ManualClock", controller.context.clock)
        for seconds in (0, 10):
            said(controller, LEASES, renewed(kube, seconds))
        last = renewed(kube, 20)
        clock.now += 31
        assert controller.is_held("team")
        await until(lambda: controller.cache.get(LEASES, ObjectKey("team", namespace_scope.NAME)) == last)
        assert controller.is_held("team")
        assert controller.reconciled == []
        clock.now += 31
        await until(lambda: controller.reconciled == [key])
        said(controller, LEASES, last)


@pytest.mark.parametrize(
    ("error", "ends"),
    [(Unavailable(0, "Timeout", "no response"), False), (Forbidden(403, "Forbidden", "leases"), True)],
    ids=["no answer", "not permitted"],
)
async def test_without_an_answer_a_claim_does_not_end(error: KubeError, ends: bool) -> None:
    """Only a service whose rights are those of an earlier chart relies on STATE alone."""
    asked = 0

    class Refusing(MemoryKube):
        async def get(self, *_: Any, **__: Any) -> KubeObject:
            nonlocal asked
            asked += 1
            raise error

    kube = Refusing()
    async with controlling([], kube=kube) as controller:
        said(controller, LEASES, renewed(kube, 0))
        await until(lambda: asked > 1 or not controller.is_held("team"))
        assert controller.is_held("team") is not ends


async def test_nothing_is_kept_of_a_claim_that_is_deleted_while_the_api_server_is_asked_about_it() -> None:
    """What was noted after its deletion stayed."""
    asked = asyncio.Event()

    class Deleting(MemoryKube):
        async def get(self, resource: Resource, key: ObjectKey) -> KubeObject:
            obj = await super().get(resource, key)
            controller.cache.remove(LEASES, key, obj["metadata"]["uid"])
            asked.set()
            return obj

    kube = Deleting()
    async with controlling([], kube=kube) as controller:
        controller.cache.put(LEASES, renewed(kube, 0))
        await asked.wait()
        await until(lambda: not controller._expired)


async def test_metrics_of_reconciles_are_removed_with_their_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controllers, "COUNT_INTERVAL", 0.01)
    kept, gone = ObjectKey("kept", "a"), ObjectKey("gone", "a")
    async with served([kept, gone], Deployments, AllKeys()) as (controller, publisher):
        registry = controller.context.metrics.registry

        def reconciled(namespace: str) -> float | None:
            figure = {"resource_type": DEPLOYMENTS.plural, "namespace": namespace, "result": "success"}
            return registry.get_sample_value("dynamo_operator_reconcile_total", figure)

        await until(lambda: reconciled("kept") == reconciled("gone") == 1)
        publisher.delete(DEPLOYMENTS, gone, version_of(deployment(gone)))
        await until(lambda: reconciled("gone") is None)
        assert reconciled("kept") == 1
