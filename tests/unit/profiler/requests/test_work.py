"""Profiling that is under way: in turn by namespace; it ends with its request, and before another replica begins it."""

import asyncio
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dynamo_profiler.profiling.results import ProfilingRequest, ProfilingResult, Progress
from dynamo_profiler.profiling.thorough import read_output
from dynamo_profiler.requests.controller import RequestController
from dynamo_profiler.requests.work import Profilings
from dynamo_shared.aio import Offload
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec, ProfilingPhase
from dynamo_shared.leases import AllKeys
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.settings import Settings

from tests.building.memory_bus import MemoryBus
from tests.building.waiting import turns


class Endless:
    """A profiler that never comes to a result."""

    def __init__(self) -> None:
        self.works: set[str] = set()

    async def run(self, request: ProfilingRequest, progress: Progress) -> ProfilingResult:
        self.works.add(request.name)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.works.discard(request.name)
        raise AssertionError


class Shared(AllKeys):
    """Keys of two replicas; this one's are given away by namespace."""

    async def give_away(self, namespace: str) -> None:
        for drainer in self._drainers:
            await drainer(lambda key: key.namespace == namespace)


def asked(name: str, namespace: str = "ns") -> tuple[ObjectKey, Callable[[], ProfilingRequest]]:
    return ObjectKey(namespace, name), lambda: ProfilingRequest(
        name=name, namespace=namespace, spec=DynamoGraphDeploymentRequestSpec(model="m")
    )


@pytest.mark.parametrize(("given", "left"), [("ns", {"other"}), ("none", {"one", "other"})])
async def test_work_ends_before_requests_are_given_to_another_replica(given: str, left: set[str]) -> None:
    shared, profiler = Shared(), Endless()
    kube: Any = SimpleNamespace(acting_as=lambda _: kube, guarded=lambda _: kube)
    context = SimpleNamespace(
        settings=Settings(),
        kube=kube,
        bus=MemoryBus(),
        ownership=lambda _: shared,
        supervisor=lambda _: None,
        queue=lambda *_: SimpleNamespace(),
        clock=lambda: 0.0,
        metrics=Metrics(),
    )
    controller = RequestController(
        cast(Any, context), "profiler", profiler.run, read_output, lambda _: None, large=Offload(above=0, at_once=1)
    )
    controller._profilings.ensure("u-1", *asked("one"))
    controller._profilings.ensure("u-2", *asked("other", "elsewhere"))
    await asyncio.sleep(0)
    assert profiler.works == {"one", "other"}

    await shared.give_away(given)
    assert profiler.works == left
    await controller._profilings.release(lambda _: True)


async def test_requests_of_one_namespace_do_not_delay_those_of_another() -> None:
    profiler = Endless()
    profilings = Profilings(profiler.run, lambda _: None, at_once=2)
    for number in range(20):
        profilings.ensure(f"u-{number}", *asked(f"r-{number}", "busy"))
    profilings.ensure("u-other", *asked("other", "quiet"))
    await turns()
    assert profiler.works == {"r-0", "r-1", "other"}
    assert profilings.step("u-2") == (ProfilingPhase.INITIALIZING, "waiting for its turn")
    profilings.stop("u-0")
    profilings.stop("u-2")
    await turns()
    assert profiler.works == {"r-1", "r-3", "other"}
    await profilings.release(lambda _: True)


async def test_a_request_is_read_only_at_its_turn() -> None:
    """Thousands may wait, and a megabyte of each would be kept."""
    profilings = Profilings(Endless().run, lambda _: None, at_once=1)
    read: list[str] = []

    def reads(name: str) -> ProfilingRequest:
        read.append(name)
        return asked(name)[1]()

    for number in range(3):
        profilings.ensure(f"u-{number}", asked(f"r-{number}")[0], partial(reads, f"r-{number}"))
    await turns()
    assert read == ["r-0"]
    profilings.stop("u-0")
    await turns()
    assert read == ["r-0", "r-1"]
    await profilings.release(lambda _: True)
