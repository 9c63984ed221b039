"""A failing part fails alone, and one malformed object affects only itself."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sized
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

import pytest
from dynamo_shared.aio import ended, supervision
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DEPLOYMENTS, ObjectKey, key_of
from dynamo_shared.leases import AllKeys
from dynamo_shared.runtime import Controller, Result, ServiceContext
from dynamo_shared.runtime.controller import Part
from dynamo_shared.runtime.health import Health, HealthState
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.routes import CacheChange, Reconciler, TaskRoute
from dynamo_shared.runtime.supervision import Supervisor
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state.publisher import StatePublisher
from dynamo_shared.wire import subjects
from prometheus_client import generate_latest

from tests.building.waiting import until
from tests.unit.runtime.serving import SERVICE, deployment, served


@pytest.fixture(autouse=True)
def quick_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(supervision, "LAST_PAUSE", 0.0)


class Deployments(Controller):
    """Reconciles Deployments; fails for those named "routed-badly", "counted-badly" and "noticed-badly"."""

    def __init__(self, context: ServiceContext, parts: Mapping[str, Part]) -> None:
        super().__init__(context, SERVICE, (DEPLOYMENTS,))
        self.reconciled: list[str] = []
        self.noticed: list[str] = []
        self.known: list[str | None] = []

        self.wire(
            {DEPLOYMENTS.plural: Reconciler(self.reconcile, lambda: self.of_each(DEPLOYMENTS, _keys))},
            (TaskRoute(DEPLOYMENTS, to=self._routed),),
            effects={DEPLOYMENTS: self._noticed},
            counted={DEPLOYMENTS: _state},
            background=parts,
        )

    def _routed(self, change: CacheChange) -> Iterable[Task]:
        if change.key.name == "routed-badly":
            raise OverflowError("date value out of range: a tenant's secret")
        self.known.append(change.old["metadata"]["resourceVersion"] if change.old is not None else None)
        yield Task.of(DEPLOYMENTS, change.key)

    def _noticed(self, change: CacheChange) -> None:
        if change.key.name == "noticed-badly":
            raise AttributeError("no such field")
        self.noticed.append(change.key.name)

    async def reconcile(self, key: ObjectKey) -> Result:
        self.reconciled.append(key.name)
        return Result()


def _keys(deployment: KubeObject) -> Iterable[ObjectKey]:
    key = key_of(deployment)
    if key.name == "routed-badly":
        raise OverflowError("date value out of range")
    yield key


def _state(deployment: KubeObject) -> str:
    if deployment["metadata"]["name"] == "counted-badly":
        raise KeyError("status")
    return "ready"


def named(name: str) -> ObjectKey:
    return ObjectKey("ns", name)


@asynccontextmanager
async def controlling(
    names: Iterable[str], parts: Mapping[str, Part] | None = None
) -> AsyncIterator[tuple[Deployments, ServiceContext, StatePublisher]]:
    made = partial(Deployments, parts=parts or {})
    async with served(map(named, names), made, AllKeys()) as (controller, publisher):
        yield controller, controller.context, publisher


def reported(health: Health) -> dict[str, Any]:
    return cast("dict[str, Any]", health.report()["parts"])


def figure(context: ServiceContext, line: str) -> bool:
    return line in generate_latest(context.metrics.registry).decode().splitlines()


async def test_an_object_that_cannot_be_routed_affects_only_itself() -> None:
    async with controlling(["a", "routed-badly", "z"]) as (controller, context, publisher):
        await until(lambda: {"a", "z"} <= set(controller.reconciled))
        publisher.put(DEPLOYMENTS, deployment(named("b")))
        await until(lambda: "b" in controller.reconciled)
        assert "routed-badly" not in controller.reconciled
        assert figure(
            context, 'dynamo_platform_object_failures_total{resource="deployments.apps",service="service"} 1.0'
        )


async def test_listeners_are_notified_of_a_change_that_cannot_be_routed() -> None:
    async with controlling([]) as (controller, _, publisher):
        publisher.put(DEPLOYMENTS, deployment(named("routed-badly")))
        publisher.put(DEPLOYMENTS, deployment(named("noticed-badly")))
        publisher.put(DEPLOYMENTS, deployment(named("z")))
        await until(lambda: {"noticed-badly", "z"} <= set(controller.reconciled))
        assert controller.noticed == ["routed-badly", "z"]


async def test_a_service_that_ends_leaves_no_report_of_what_it_read() -> None:
    """Its next run, which read no invalid message, did not know of it: `/readyz` stayed degraded."""
    async with controlling([]) as (_, context, _):
        subject = subjects.state_subject(context.settings.platform.cluster_name, DEPLOYMENTS.id, named("a"))
        await context.bus.publish(subject, b"damaged")
        await until(lambda: f"{SERVICE}: STATE" in reported(context.health))
    assert [part for part in reported(context.health) if part.startswith(f"{SERVICE}: ")] == []


async def test_an_object_that_cannot_be_counted_is_left_out() -> None:
    async with controlling(["a", "counted-badly", "z"]) as (controller, _, _):
        assert controller.counts() == {DEPLOYMENTS.plural: {("ns", "ready"): 2}}


async def test_a_failing_part_is_restarted_and_others_continue() -> None:
    begun, steady, runs = asyncio.Event(), asyncio.Event(), 0

    async def failing() -> None:
        nonlocal runs
        runs += 1
        if runs <= 2:
            raise ExceptionGroup("in tasks", [OverflowError("date value out of range: a tenant's secret")])
        begun.set()
        await asyncio.Event().wait()

    async def other() -> None:
        steady.set()
        await asyncio.Event().wait()
        raise AssertionError("ended")

    async with controlling(["a"], {"failing": failing, "other": other}) as (controller, context, _):
        await begun.wait()
        await steady.wait()
        await until(lambda: controller.reconciled == ["a"])
        assert context.health.ready
        part = reported(context.health)["service/failing"]
        assert part["state"] == "degraded"
        assert "OverflowError" in part["message"]
        assert "secret" not in part["message"]
        assert figure(context, 'dynamo_platform_part_failures_total{part="failing",service="service"} 2.0')
        assert figure(context, 'dynamo_platform_part_failures_total{part="other",service="service"} 0.0')


def supervisor() -> Supervisor:
    return Supervisor(SERVICE, Health(), Metrics())


@pytest.mark.parametrize(("essential", "state"), [(False, HealthState.DEGRADED), (True, HealthState.FAILED)])
async def test_nothing_is_ready_without_an_essential_part(essential: bool, state: HealthState) -> None:
    subject, begun, runs = supervisor(), asyncio.Event(), 0

    async def work() -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            raise ValueError("broken")
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(subject.keep("part", work, essential=essential))
    await begun.wait()
    assert reported(subject.health)["service/part"]["state"] == state.value
    assert subject.health.ready is not essential
    await ended(task)
    assert "service/part" not in reported(subject.health)


async def test_a_part_that_ends_without_an_error_is_restarted() -> None:
    subject, runs = supervisor(), asyncio.Queue[int]()

    def work() -> Awaitable[object]:
        return runs.put(1)

    task = asyncio.create_task(subject.keep("part", work))
    for _ in range(3):
        await runs.get()
    await ended(task)


async def test_an_object_whose_version_went_back_is_reconciled_like_a_new_one() -> None:
    """Otherwise a status that only this service writes would stay outdated."""
    async with controlling(["a"]) as (controller, _, publisher):
        await until(lambda: "a" in controller.reconciled)
        controller.known.clear()
        for number, version in enumerate(("7", "9", "3"), 1):
            obj = deployment(named("a"))
            obj["metadata"]["resourceVersion"] = version
            publisher.put(DEPLOYMENTS, obj)
            await until(partial(_are, controller.known, number))
        assert controller.known == ["1", "7", None]


def _are(items: Sized, number: int) -> bool:
    return len(items) == number
