"""Profiling that is under way: it ends with its request, and before another replica begins it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dynamo_profiler.profiling.results import ProfilingRequest, ProfilingResult, Progress
from dynamo_profiler.profiling.thorough import read_output
from dynamo_profiler.requests.controller import RequestController
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec
from dynamo_shared.bus.memory import MemoryBus
from dynamo_shared.leases import AllKeys, Drainer
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.settings import Settings


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

    def __init__(self) -> None:
        self.drainers: list[Drainer] = []

    def before_release(self, drainer: Drainer) -> None:
        self.drainers.append(drainer)


def asked(name: str, namespace: str = "ns") -> ProfilingRequest:
    return ProfilingRequest(name=name, namespace=namespace, spec=DynamoGraphDeploymentRequestSpec(model="m"))


@pytest.mark.parametrize(("given", "left"), [("ns", {"other"}), ("none", {"one", "other"})])
async def test_it_has_ended_before_requests_are_given_to_another_replica(given: str, left: set[str]) -> None:
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
    controller = RequestController(cast(Any, context), "profiler", profiler, read_output)
    controller._profilings.ensure("u-1", asked("one"))
    controller._profilings.ensure("u-2", asked("other", "elsewhere"))
    await asyncio.sleep(0)
    assert profiler.works == {"one", "other"}

    def gone(key: ObjectKey) -> bool:
        return key.namespace == given

    for drainer in shared.drainers:
        await drainer(gone)
    assert profiler.works == left
    await controller._profilings.release(lambda _: True)
