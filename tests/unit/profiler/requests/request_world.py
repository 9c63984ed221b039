"""Requests, what is made of them, and the reconciler over an API server in memory, for tables of what one reconcile does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from dynamo_profiler.profiling.results import DeploymentCandidate, ProfilingRequest, ProfilingResult, Progress, Remark
from dynamo_profiler.requests import deployment
from dynamo_profiler.requests.dcgm import DcgmExporters
from dynamo_profiler.requests.deployment import GraphDeployer
from dynamo_profiler.requests.hardware_discovery import HardwareFinder
from dynamo_profiler.requests.reconciler import RequestReconciler
from dynamo_profiler.requests.thorough import MeasuringBudget, ThoroughProfiling
from dynamo_profiler.requests.work import Profilings
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.request_graphs import marked
from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    JOBS,
    ObjectKey,
    Resource,
    controller_reference,
    of,
)
from dynamo_shared.api.v1beta1.request import Figures, ProfilingPhase
from dynamo_shared.api.validation import Facts
from dynamo_shared.kube.errors import Forbidden, KubeError, MissingRight
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.settings.operator import Infrastructure
from dynamo_shared.runtime.settings.planner import Dcgm
from dynamo_shared.runtime.status_writer import SETTLE, StatusWriter
from dynamo_shared.state.cache import ObjectCache

from tests.building.clock import ManualClock
from tests.building.memory_kube import MemoryKube
from tests.building.recorded_offload import RecordedOffload
from tests.building.tables import conditions, outcome_of
from tests.building.waiting import turns
from tests.unit.announced import Announced

KEY = ObjectKey("ns", "qwen")
HARDWARE = {"gpuSku": "h200_sxm", "totalGpus": 8, "numGpusPerNode": 8}
SELECTED = {**DYNAMO_GRAPH_DEPLOYMENTS.type_meta, "metadata": {"name": "qwen-dgd"}, "spec": {"components": []}}
REFUSED = Forbidden(403, "Forbidden", "exceeded quota")
NO_RIGHT = MissingRight(403, "Forbidden", 'User "profiler" cannot create resource "x"')


def _now() -> datetime:
    return datetime(2026, 1, 2, tzinfo=UTC)


def request(phase: str = "", said: str = "", *, spec: Any = None, metadata: Any = None, **status: Any) -> KubeObject:
    """A request in a phase, with conditions. One that is not new was observed."""
    known = {"phase": phase, "observedGeneration": 1, "conditions": conditions(said)} if phase else {}
    return {
        **DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.type_meta,
        "metadata": {"name": "qwen", "namespace": "ns", "uid": "u-1", **(metadata or {})},
        "spec": {"model": "Qwen/Qwen3-32B", "backend": "vllm", "hardware": HARDWARE, **(spec or {})},
        "status": {**known, **status},
    }


def stored(resource: Resource, name: str, uid: str = "", *, owned: bool = True, **parts: Any) -> KubeObject:
    """An object of the namespace, made for the request with this uid, where there is one, and `owned` by it."""
    obj = {**resource.type_meta, "metadata": {"name": name, "namespace": "ns"}, **parts}
    if not uid:
        return obj
    owner = controller_reference(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, "qwen", uid)
    return marked({"metadata": {"name": "qwen", "namespace": "ns", "uid": uid}}, obj, owner=owner if owned else None)


def graph(uid: str = "u-1", state: str = "successful", reason: str = "", **metadata: str) -> KubeObject:
    """The graph of a request: its state, and why it is not ready."""
    ready = [{"type": "Ready", "status": "False", "reason": reason, "message": "no such image"}] if reason else []
    components = {"A": {"replicas": 2, "availableReplicas": 2}, "B": {"replicas": 1, "availableReplicas": 0}}
    status = {"state": state, "conditions": ready, "components": components}
    made = stored(DYNAMO_GRAPH_DEPLOYMENTS, "qwen-dgd", uid, owned=False, spec={}, status=status)
    made["metadata"] |= {"uid": f"graph-of-{uid}", **metadata}
    return made


def config_map(uid: str = "u-1") -> KubeObject:
    made = stored(CONFIG_MAPS, "planner-config-qwen", uid, data={"kept": ""})
    made["metadata"].setdefault("labels", {})[labels.GRAPH_DEPLOYMENT_NAME] = "qwen-dgd"
    return made


def job(uid: str = "u-1", end: str = "", reason: str = "", **metadata: str) -> KubeObject:
    status = {"conditions": [{"type": end, "status": "True", "reason": reason}] if end else []}
    made = stored(JOBS, "profile-qwen", uid, spec={}, status=status)
    made["metadata"] |= metadata
    return made


def output(uid: str = "u-1", **data: str) -> KubeObject:
    return stored(CONFIG_MAPS, "dgdr-output-qwen", uid, data=data)


def result(*, meets_sla: bool | None = True, remark: str = "", reads: bool = False, size: int = 0) -> ProfilingResult:
    """A deployment that was selected, of a front of two; `reads` whether its graph reads a ConfigMap, `size` its bytes."""
    read = {**CONFIG_MAPS.type_meta, "metadata": {"name": "planner-config-qwen"}, "data": {"planner_config.json": "{}"}}
    best = DeploymentCandidate(
        figures=Figures(backend="vllm", serving="disagg", gpus=8, meets_sla=meets_sla, ttft=429.5),
        parallelism={},
        dgd={**SELECTED, "spec": {"components": [], "backendFramework": "x" * size}} if size else SELECTED,
        config_maps=(read,) if reads else (),
    )
    remarks = (Remark(reason=remark, message="5 ms was asked for"),) if remark else ()
    return ProfilingResult(selected=best, pareto=(best, best), remarks=remarks)


class World:
    """The reconciler over an API server in memory, with a profiler that ends as the test says.

    Of `unheard` the cache does not know yet, and of the end of `outdated` neither.
    """

    @classmethod
    def of(cls, *observed: KubeObject, **given: Any) -> Callable[[], World]:
        """A world for a row of a table."""
        return partial(cls, *observed, **given)

    def __init__(
        self,
        *observed: KubeObject,
        unheard: Iterable[KubeObject] = (),
        outdated: Iterable[KubeObject] = (),
        ends: ProfilingResult | Exception | None = None,
        candidates: Callable[[ProfilingRequest], None] = lambda _: None,
        refusals: Mapping[str, KubeError] | None = None,
    ) -> None:
        self.kube, self.cache, self.clock = MemoryKube(*observed, refusals=refusals), ObjectCache(), ManualClock()
        deployment.index(self.cache)
        self.kube.publish(self.cache)
        for obj in unheard:
            self.kube.put(obj)
        for obj in outdated:
            self.cache.put(of(obj), {**obj, "metadata": {**obj["metadata"], "resourceVersion": "7"}})
        self.before: KubeObject = observed[0]["status"] if observed else {}
        self.announced, self.ends = Announced(), ends
        self.asked: list[ProfilingRequest] = []
        self.large = RecordedOffload()
        self.profilings = Profilings(self.profile, lambda _: None, at_once=1)
        kube: Any = self.kube
        budget = MeasuringBudget(60, 0)
        self.reconciler = RequestReconciler(
            kube,
            self.cache,
            StatusWriter(kube, self.cache, self.clock),
            self.announced,
            self.profilings,
            ThoroughProfiling(
                *(
                    kube,
                    self.cache,
                    self.read,
                    lambda _: "image",
                    budget,
                    "profiling",
                    Infrastructure(),
                    candidates,
                    _now,
                    self.large,
                )
            ),
            GraphDeployer(kube, self.cache, self.announced),
            HardwareFinder(self.cache, DcgmExporters(kube, self.clock, Dcgm()), 32, True),
            Facts,
            _now,
            self.large,
        )

    async def profile(self, asked: ProfilingRequest, progress: Progress) -> ProfilingResult:
        self.asked.append(asked)
        progress(ProfilingPhase.SWEEPING_PREFILL, "12 of 40 prefill engines")
        if self.ends is None:
            await asyncio.Event().wait()
        return self.read(asked, {})

    def read(self, _: ProfilingRequest, _data: Mapping[str, str]) -> ProfilingResult:
        if isinstance(self.ends, Exception):
            raise self.ends
        assert self.ends is not None
        return self.ends

    async def reconcile(self, *, times: int = 1) -> Result:
        """As often as that; other tasks do in between what they can, and what waits to be reported has waited."""
        for number in range(times):
            if number:
                await turns()
                self.clock.now += SETTLE
            reconciled = await self.reconciler.reconcile(KEY)
        return reconciled

    async def status(self) -> KubeObject:
        observed: KubeObject = (await self.kube.get(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, KEY))["status"]
        return observed

    async def outcome(self) -> str:
        return outcome_of(self.before, await self.status(), self.announced, self.kube)


VALID = "Validation+ValidationPassed Profiling-DiscoveringHardware Succeeded-Pending"
UNDER_WAY = "Validation+ValidationPassed Profiling-Initializing Succeeded-Profiling"
DONE = "Profiling+ProfilingCompleted SpecGenerated+SpecGenerated"
READY = "Succeeded+SpecGenerated"
PROFILED = f"Validation+ValidationPassed {DONE} ObjectiveMet+ObjectiveMet"
SELECTION = {"dgdName": "qwen-dgd", "profilingResults": {"selectedConfig": SELECTED}}
CHANGED = {"metadata": {"generation": 2}}
WRITTEN = "ConfigMap planner-config-qwen"
offered = {"autoApply": False}
pending = partial(request, "Pending", VALID)
profiling = partial(request, "Profiling", UNDER_WAY)
ready = partial(request, "Ready", f"{PROFILED} {READY}", spec=offered, **SELECTION)
