"""Builds that no request needs any more."""

from collections.abc import Callable

from dynamo_image_builder import reconciler
from dynamo_image_builder.cancellation import CANCEL_AFTER, BuildReconciler, routes
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_NIM_REQUESTS, JOBS, ObjectKey
from dynamo_shared.runtime.routes import CacheChange
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state.cache import ObjectCache

from tests.building.clock import ManualClock
from tests.building.memory_kube import MemoryKube

from .building import build, job, request

JOB = ObjectKey("dynamo-builds", build().job)
BUILDING = {"phase": "Building", "job": str(JOB)}


class Stage:
    """The reconciler of Jobs with the test's own cache and server."""

    def __init__(self, *stored: KubeObject, serves: Callable[[str], bool] = lambda _: True) -> None:
        self.kube, self.cache, self.clock = MemoryKube(*stored), ObjectCache(), ManualClock()
        reconciler.index(self.cache)
        self.kube.publish(self.cache)
        self.builds = BuildReconciler(self.kube, self.cache, serves, self.clock)  # type: ignore[arg-type]

    async def reconcile_twice(self) -> list[str]:
        """Reconcile, and again when that asks for it; returns the writes."""
        if (again := (await self.builds.reconcile(JOB)).requeue_after) is not None:
            assert again == CANCEL_AFTER
            self.clock.now += again
            assert (await self.builds.reconcile(JOB)).requeue_after is None
        return self.kube.writes


async def test_a_build_without_requests_is_cancelled() -> None:
    """It used a place of its namespace to the end, although its request was deleted."""
    assert await Stage(job()).reconcile_twice() == [f"delete Job {JOB.name}"]


async def test_a_build_that_a_request_of_any_namespace_needs_continues() -> None:
    needs = request(status=BUILDING)
    needs["metadata"]["namespace"] = "elsewhere"
    assert await Stage(job(), needs).reconcile_twice() == []


async def test_a_request_that_is_created_again_keeps_its_build() -> None:
    stage = Stage(job())
    await stage.builds.reconcile(JOB)
    stage.cache.put(DYNAMO_NIM_REQUESTS, request(status=BUILDING))
    stage.clock.now += CANCEL_AFTER
    assert (await stage.builds.reconcile(JOB)).requeue_after is None
    stage.cache.remove(DYNAMO_NIM_REQUESTS, ObjectKey("ns", "one"), "one")
    assert (await stage.builds.reconcile(JOB)).requeue_after == CANCEL_AFTER
    assert stage.kube.writes == []


async def test_builds_that_ended_and_builds_of_others_stay() -> None:
    of_release = job()
    of_release["metadata"]["labels"].pop("nvidia.com/dynamo-image-namespace")
    for stage in (Stage(job("Complete")), Stage(of_release), Stage(job(), serves=lambda _: False), Stage()):
        assert await stage.reconcile_twice() == []


def test_a_request_that_leaves_its_build_has_it_checked() -> None:
    def tasks(old: KubeObject | None, new: KubeObject | None) -> list[Task]:
        change = CacheChange(DYNAMO_NIM_REQUESTS, ObjectKey("ns", "one"), old, new)
        return [task for route in routes() if route.resource == change.resource for task, _ in route.tasks(change)]

    building, other = request(status=BUILDING), request(status={"phase": "Building", "job": "dynamo-builds/other"})
    assert tasks(building, None) == tasks(building, other) == [Task.of(JOBS, JOB)]
    assert tasks(building, building) == tasks(None, building) == tasks(request(), None) == []
