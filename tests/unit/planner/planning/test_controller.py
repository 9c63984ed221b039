"""Which graphs have a runner: what ends one, and what is forgotten with a graph."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

from dynamo_planner.metrics import PlanMetrics
from dynamo_planner.planning.controller import Plans, _Running
from dynamo_shared.api import namespace_scope
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import PLANNER_CONFIG
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, LEASES, ObjectKey
from dynamo_shared.bus.memory import MemoryBus
from dynamo_shared.kube.errors import NotFound
from dynamo_shared.leases import AllKeys
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.runtime.settings import Settings
from prometheus_client import CollectorRegistry

from tests.unit.announced import Announced

from .test_runner import plan

KEY = ObjectKey("ns", "g")


class NoObjects:
    """An API server that has nothing but what is written to it."""

    def __init__(self) -> None:
        self.statuses: list[KubeObject] = []

    def acting_as(self, _: str) -> NoObjects:
        return self

    def guarded(self, _: object) -> NoObjects:
        return self

    async def get(self, _: object, key: ObjectKey) -> KubeObject:
        raise NotFound(404, "NotFound", str(key))

    async def apply_status(self, _: object, obj: KubeObject) -> KubeObject:
        self.statuses.append(obj)
        return obj


def plans() -> tuple[Plans, Announced]:
    announced = Announced()
    context = SimpleNamespace(
        settings=Settings(),
        kube=NoObjects(),
        bus=MemoryBus(),
        ownership=lambda _: AllKeys(),
        supervisor=lambda _: SimpleNamespace(isolated=lambda *_: nullcontext()),
        queue=lambda *_: SimpleNamespace(add=lambda *_: None),
        clock=lambda: 0.0,
    )
    controller = Plans(cast(Any, context), "planner", PlanMetrics(CollectorRegistry()), None)
    controller._reporter._announcer = cast(Announcer, announced)
    controller.cache.on_change(controller._changed)
    return controller, announced


def graph(uid: str = "u", **annotations: str) -> KubeObject:
    return {
        "apiVersion": DYNAMO_GRAPH_DEPLOYMENTS.api_version,
        "kind": DYNAMO_GRAPH_DEPLOYMENTS.kind,
        "metadata": {
            "name": "g",
            "namespace": "ns",
            "uid": uid,
            "resourceVersion": "1",
            "annotations": annotations or {PLANNER_CONFIG: "plan"},
        },
        "spec": {"components": []},
    }


async def test_planning_ends_where_another_platform_serves_the_namespace() -> None:
    controller, _ = plans()
    for namespace in ("ns", "other"):
        runner = asyncio.create_task(asyncio.Event().wait())
        controller._runners[ObjectKey(namespace, "g")] = _Running(plan(), cast(Any, runner))
    lease = namespace_scope.lease("ns", "1.2.0", 30, datetime.now(UTC))
    lease["metadata"] |= {"uid": "l", "resourceVersion": "1"}
    controller.cache.put(LEASES, lease)
    assert list(controller._runners) == [ObjectKey("other", "g")]


async def test_a_refusal_is_reported_again_when_planning_is_asked_for_again() -> None:
    controller, announced = plans()
    for asks in (graph(), graph(), graph(unrelated="x"), graph()):
        controller.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, _newer(controller, asks))
        await controller.reconcile(KEY)
    assert [line.split()[1] for line in announced.lines] == ["NoPlannerConfig"] * 2


async def test_nothing_is_remembered_of_graphs_that_are_gone() -> None:
    controller, _ = plans()
    for uid in ("a", "b"):
        controller.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, graph(uid))
        await controller.reconcile(KEY)
        controller.cache.remove(DYNAMO_GRAPH_DEPLOYMENTS, KEY, uid)
    assert not controller._reporter._last


def _newer(controller: Plans, obj: KubeObject) -> KubeObject:
    """The object, as written after the one that is there."""
    known = controller.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, KEY)
    obj["metadata"]["resourceVersion"] = str(int(known["metadata"]["resourceVersion"]) + 1 if known else 1)
    return obj
