"""RequestReconciler: a table for each phase of a request, with all that one reconcile does of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from dynamo_profiler.profiling.results import (
    DeploymentCandidate,
    ProfilingFailed,
    ProfilingRequest,
    ProfilingResult,
    Progress,
    Remark,
)
from dynamo_profiler.requests.dcgm import DcgmExporters
from dynamo_profiler.requests.deploying import GraphDeployer
from dynamo_profiler.requests.finding import HardwareFinder
from dynamo_profiler.requests.reconciler import FINALIZER, POD_INTERVAL, RequestReconciler
from dynamo_profiler.requests.thorough import MeasuringBudget, ThoroughProfiling
from dynamo_profiler.requests.work import Profilings
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import annotations as keys
from dynamo_shared.api.registry import labels
from dynamo_shared.api.request_graphs import marked
from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    JOBS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    ObjectKey,
    Resource,
    controller_reference,
    of,
)
from dynamo_shared.api.v1beta1.request import Figures, ProfilingPhase
from dynamo_shared.api.validation import Facts
from dynamo_shared.kube.errors import Forbidden, KubeError, NamespaceTerminating, NotFound, Unavailable
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.settings.planner import Dcgm
from dynamo_shared.runtime.status_writer import SETTLE, StatusWriter
from dynamo_shared.state.cache import ObjectCache

from tests.building.clock import ManualClock
from tests.building.memory_kube import MemoryKube
from tests.building.tables import conditions, outcome_of, table
from tests.building.waiting import turns
from tests.unit.announced import Announced

KEY = ObjectKey("ns", "qwen")
HARDWARE = {"gpuSku": "h200_sxm", "totalGpus": 8, "numGpusPerNode": 8}
SELECTED = {**DYNAMO_GRAPH_DEPLOYMENTS.type_meta, "metadata": {"name": "qwen-dgd"}, "spec": {"components": []}}
REFUSED = Forbidden(403, "Forbidden", "exceeded quota")


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


def result(*, meets_sla: bool | None = True, remark: str = "", reads: bool = False) -> ProfilingResult:
    """A deployment that was selected, of a front of two; `reads` whether its graph reads a ConfigMap."""
    read = {**CONFIG_MAPS.type_meta, "metadata": {"name": "planner-config-qwen"}, "data": {"planner_config.json": "{}"}}
    best = DeploymentCandidate(
        figures=Figures(backend="vllm", serving="disagg", gpus=8, meets_sla=meets_sla, ttft=429.5),
        parallelism={},
        dgd=SELECTED,
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
        self.kube.publish(self.cache)
        for obj in unheard:
            self.kube.put(obj)
        for obj in outdated:
            self.cache.put(of(obj), {**obj, "metadata": {**obj["metadata"], "resourceVersion": "7"}})
        self.before: KubeObject = observed[0]["status"] if observed else {}
        self.announced, self.ends = Announced(), ends
        self.asked: list[ProfilingRequest] = []
        self.profilings = Profilings(self.profile, lambda _: None, at_once=1)
        kube: Any = self.kube
        budget = MeasuringBudget(60, 0)
        self.reconciler = RequestReconciler(
            kube,
            self.cache,
            StatusWriter(kube, self.cache, self.clock),
            self.announced,
            self.profilings,
            ThoroughProfiling(kube, self.cache, self.read, lambda _: "image", budget, "profiling", candidates, _now),
            GraphDeployer(kube, self.cache, self.announced),
            HardwareFinder(self.cache, DcgmExporters(kube, self.clock, Dcgm()), 32, True),
            Facts,
            _now,
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


VALID = "Validation+Valid Profiling-DiscoveringHardware Succeeded-Pending"
REFUSAL = "Failed Validation-ValidationFailed Succeeded-Failed"
CLAIM = {"modelCache": {"pvcName": "models"}}
NODE_LABELS = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.memory": "81559",
}
NODE = {**NODES.type_meta, "metadata": {"name": "a", "labels": NODE_LABELS}}


@pytest.mark.parametrize(
    ("spec", "others", "becomes", "event", "says"),
    [
        ({}, (), f"Pending {VALID}", "Initialized", "the hardware to plan for is known"),
        (CLAIM, (stored(PERSISTENT_VOLUME_CLAIMS, "models"),), f"Pending {VALID}", "Initialized", ""),
        (CLAIM, (), REFUSAL, "ValidationFailed", "there is no PersistentVolumeClaim models in namespace ns"),
        (
            {"workload": {"concurrency": 5, "requestRate": 5}},
            (),
            REFUSAL,
            "ValidationFailed",
            "spec.workload: has concurrency and requestRate",
        ),
        (
            {"hardware": {"gpuSku": "mi300"}},
            (),
            REFUSAL,
            "ValidationFailed",
            "no node has mi300: the cluster has h100_sxm (1 node of 8)",
        ),
    ],
)
async def test_a_new_request_is_validated(spec, others, becomes, event, says):
    world = World(request(spec=spec), NODE, *others)
    assert await world.reconcile() == Result()
    assert await world.outcome() == f"{becomes}; {event}"
    status = await world.status()
    assert says in status["conditions"][-1]["message"]
    assert status["observedGeneration"] == 1
    assert world.announced.events == [status["phase"].lower()]


@pytest.mark.parametrize(
    ("hardware", "source", "product", "planned"),
    [
        (HARDWARE, "spec", None, {**HARDWARE, "vramMb": 143771}),
        (
            None,
            "nodeLabels",
            "NVIDIA-H100-80GB-HBM3",
            {"gpuSku": "h100_sxm", "vramMb": 81559, "numGpusPerNode": 8, "totalGpus": 8},
        ),
    ],
)
async def test_a_request_is_profiled_for_the_hardware_that_its_status_has(hardware, source, product, planned):
    world = World(request(spec={"hardware": hardware}), NODE)
    await world.reconcile(times=4)
    status = (await world.status())["hardware"]
    assert (status["source"], status["planned"]) == (source, planned)
    (asked,) = world.asked
    assert asked.spec.hardware is not None
    assert asked.spec.hardware.model_dump(by_alias=True, exclude_none=True) == planned
    assert asked.gpu_product == product
    world.profilings.stop("u-1")


def no_candidates(_: ProfilingRequest) -> None:
    raise ProfilingFailed("NoCandidates", "no engine fits")


pending = partial(request, "Pending", VALID)
thorough = {"searchStrategy": "thorough"}
RIGHTS = "create ServiceAccount dgdr-profiling-job, create RoleBinding dgdr-profiling-job-profiling"
BEGUN = "Profiling Profiling-Initializing Succeeded-Profiling"
TAKEN = "Failed Profiling-NameTaken Succeeded-NameTaken"


@table(
    {
        "in this process": (World.of(pending()), BEGUN),
        "by a Job, and what an earlier one left goes": (
            World.of(pending(spec=thorough), output("u-0")),
            f"{BEGUN}; ProfilingJobCreated; delete ConfigMap dgdr-output-qwen, {RIGHTS}, create Job profile-qwen",
        ),
        "by a Job that is there already": (
            World.of(pending(spec=thorough), output(), job()),
            f"{BEGUN}; ProfilingJobCreated; {RIGHTS}",
        ),
        "the Job of an earlier request goes first": (
            World.of(pending(spec=thorough), job("u-0")),
            f"Pending Profiling-NameTaken; {RIGHTS}",
        ),
        "a Job of another author that is being deleted goes first": (
            World.of(pending(spec=thorough), job("", deletionTimestamp="2026-01-01T00:00:00Z")),
            f"Pending Profiling-NameTaken; {RIGHTS}",
        ),
        "a Job of another author": (
            World.of(pending(spec=thorough), job("")),
            f"{TAKEN}; ProfilingJobFailed; {RIGHTS}",
        ),
        "a ConfigMap of another author is where the output shall be": (
            World.of(pending(spec=thorough), output("")),
            f"{TAKEN}; ProfilingJobFailed",
        ),
        "nothing to measure": (
            World.of(pending(spec=thorough), candidates=no_candidates),
            "Failed Profiling-NoCandidates Succeeded-NoCandidates; ProfilingJobFailed",
        ),
        "the Job is refused": (
            World.of(pending(spec=thorough), refusals={"create Job profile-qwen": REFUSED}),
            f"Failed Profiling-JobCreationFailed Succeeded-Failed; ProfilingJobFailed; {RIGHTS}",
        ),
    }
)
async def test_profiling_begins(given, outcome):
    world = given()
    assert await world.reconcile() == Result(POD_INTERVAL if outcome.startswith("Pending") else None)
    assert await world.outcome() == outcome
    name = (await world.status()).get("profilingJobName")
    assert name == ("profile-qwen" if "ProfilingJobCreated" in outcome else None)


UNDER_WAY = "Validation+Valid Profiling-Initializing Succeeded-Profiling"
profiling = partial(request, "Profiling", UNDER_WAY)
offered = {"autoApply": False}
DONE = "Profiling+ProfilingCompleted SpecGenerated+SpecGenerated"
READY = "Succeeded+SpecGenerated"
WRITTEN = "ConfigMap planner-config-qwen"
measuring = partial(profiling, spec={**thorough, **offered})
THROUGH = output(profiler_status="success", **{"final_config.yaml": "{"})
MEASURED = f"Ready {DONE} ObjectiveMet+ObjectiveMet {READY}; SpecGenerated"
IS_DELETED = "Failed Profiling-JobDeleted Succeeded-JobDeleted; ProfilingCheckFailed"


@table(
    {
        "under way": (World.of(profiling()), "Profiling Profiling-SweepingPrefill"),
        "failed at a step": (
            World.of(profiling(), ends=ProfilingFailed("", "no engine fits")),
            "Failed Profiling-SweepingPrefillFailed Succeeded-SweepingPrefillFailed; ProfilingCheckFailed",
        ),
        "failed for a reason of its own": (
            World.of(profiling(), ends=ProfilingFailed("NoFigures", "no figures")),
            "Failed Profiling-NoFigures Succeeded-NoFigures; ProfilingCheckFailed",
        ),
        "selected": (
            World.of(profiling(), ends=result(reads=True)),
            f"Deploying {DONE} ObjectiveMet+ObjectiveMet Succeeded-Deploying; SpecGenerated; create {WRITTEN}",
        ),
        "selected, and not to be applied": (
            World.of(profiling(spec=offered), config_map(), ends=result(reads=True)),
            f"Ready {DONE} ObjectiveMet+ObjectiveMet {READY}; SpecGenerated; apply {WRITTEN}",
        ),
        "nothing meets the objective": (
            World.of(profiling(spec=offered), ends=result(meets_sla=False, remark="ObjectiveNotMet")),
            f"Ready {DONE} ObjectiveMet-ObjectiveNotMet {READY} ObjectiveNotMet+ObjectiveNotMet; ObjectiveNotMet SpecGenerated",
        ),
        "nothing is known of the objective": (
            World.of(profiling(spec=offered), ends=result(meets_sla=None)),
            f"Ready {DONE} ObjectiveMet?NotEstimated {READY}; SpecGenerated",
        ),
        "the graph of an earlier request has the name": (
            World.of(profiling(), graph("u-0"), config_map("u-0"), ends=result(reads=True)),
            "Failed DeploymentReady-DeploymentRejected Succeeded-Failed; DeploymentRejected",
        ),
        "a ConfigMap of another author has the name": (
            World.of(profiling(), config_map(""), ends=result(reads=True)),
            "Failed SpecGenerated-GenerationFailed Succeeded-Failed; ConfigMapCreationFailed",
        ),
        "a ConfigMap is refused": (
            World.of(profiling(), ends=result(reads=True), refusals={f"create {WRITTEN}": REFUSED}),
            "Failed SpecGenerated-GenerationFailed Succeeded-Failed; ConfigMapCreationFailed",
        ),
        "a Job under way": (
            World.of(measuring(), job(), output(phase="SweepingDecode")),
            "Profiling Profiling-SweepingDecode",
        ),
        "the profiler of a Job failed": (
            World.of(
                measuring(), job(), output(phase="SweepingDecode", profiler_status="failed", profiler_error="none fits")
            ),
            "Failed Profiling-SweepingDecodeFailed Succeeded-SweepingDecodeFailed; ProfilingCheckFailed",
        ),
        "news of its Job is late": (World.of(measuring(), outdated=[job("u-0")], unheard=[job()]), "Profiling"),
        "a Job is deleted": (World.of(measuring()), IS_DELETED),
        "a Job is deleted before it has written all": (
            World.of(measuring(), output(profiler_status="running")),
            IS_DELETED,
        ),
        "a Job ends without a result": (
            World.of(measuring(), job(end="Complete")),
            "Failed Profiling-OutputMissing Succeeded-OutputMissing; ProfilingCheckFailed",
        ),
        "the time of a Job is over": (
            World.of(measuring(), job(end="Failed", reason="DeadlineExceeded"), output(profiler_status="running")),
            "Failed Profiling-BudgetExceeded Succeeded-BudgetExceeded; ProfilingCheckFailed",
        ),
        "a Job is through": (World.of(measuring(), job(end="Complete"), THROUGH, ends=result()), MEASURED),
        # The TTL that the request gives it may pass while the platform is down.
        "a Job is through, and gone": (World.of(measuring(), THROUGH, ends=result()), MEASURED),
        "a Job is through, and gone, and news of its output is late": (
            World.of(measuring(), unheard=[THROUGH], ends=result()),
            MEASURED,
        ),
        "the end of a Job is heard of before its output": (
            World.of(
                measuring(),
                job(end="Complete"),
                outdated=[output(profiler_status="running")],
                unheard=[THROUGH],
                ends=result(),
            ),
            MEASURED,
        ),
        "a Job had written all when its time was over": (
            World.of(measuring(), job(end="Failed", reason="DeadlineExceeded"), THROUGH, ends=result()),
            MEASURED,
        ),
        "the Job of an earlier request is remembered": (
            World.of(
                measuring(), outdated=[job("u-0", "Failed")], unheard=[job(end="Complete"), THROUGH], ends=result()
            ),
            MEASURED,
        ),
        "what a Job has written cannot be read": (
            World.of(measuring(), job(), THROUGH, ends=KeyError("containers")),
            "Failed Profiling-GenerationFailed Succeeded-GenerationFailed; ProfilingCheckFailed",
        ),
    }
)
async def test_profiling_ends(given, outcome):
    world = given()
    reconciled = await world.reconcile(times=2)
    assert await world.outcome() == outcome
    status = await world.status()
    is_polled = status["phase"] == "Profiling" and not world.asked
    assert reconciled == Result(POD_INTERVAL if is_polled else None)
    assert (world.profilings.step("u-1") is not None) is (status["phase"] == "Profiling" and not is_polled)
    assert world.announced.events[-1] == status["phase"].lower()
    if "SpecGenerated+" in outcome:
        assert (status["dgdName"], status["profilingPhase"]) == ("qwen-dgd", "Done")
        assert status["profilingResults"]["selectedConfig"] == marked(request(), SELECTED, owner=None)
    world.profilings.stop("u-1")


PROFILED = f"Validation+Valid {DONE} ObjectiveMet+ObjectiveMet"
SELECTION = {"dgdName": "qwen-dgd", "profilingResults": {"selectedConfig": SELECTED}}
ready = partial(request, "Ready", f"{PROFILED} {READY}", spec=offered, **SELECTION)


def changed(generation: int, **parts: Any) -> KubeObject:
    """A request whose result waits, after a change of its spec was reported as one without effect."""
    said = f"{PROFILED} {READY}".replace("Validation+Valid", "Validation-SpecChangeRejected")
    obj = request("Ready", said, **parts, **SELECTION)
    obj["status"]["conditions"][0]["observedGeneration"] = generation
    return obj


new = partial(request, "Deploying", f"{PROFILED} Succeeded-Deploying", **SELECTION)
MADE = f"{PROFILED} DeploymentReady-DeploymentInProgress Succeeded-Deploying"
made = partial(request, "Deploying", MADE, **SELECTION)
deployed = partial(request, "Deployed", f"{PROFILED} DeploymentReady+DeploymentReady Succeeded+Deployed", **SELECTION)
lost = partial(
    request, "Failed", f"{PROFILED} DeploymentReady-DeploymentDeleted Succeeded-Failed", **{**SELECTION, "dgdName": ""}
)
rejected = partial(request, "Failed", f"{PROFILED} DeploymentReady-DeploymentRejected Succeeded-Failed", **SELECTION)
SERVES = "Deployed DeploymentReady+DeploymentReady Succeeded+Deployed; DeploymentReady"
IS_LOST = "Failed DeploymentReady-DeploymentDeleted Succeeded-Failed; DeploymentDeleted"
IS_REJECTED = "Failed DeploymentReady-DeploymentRejected Succeeded-Failed; DeploymentRejected"
CREATE = "create DynamoGraphDeployment qwen-dgd"
CHANGED = {"metadata": {"generation": 2}}
NOW = f"Deploying DeploymentReady-DeploymentInProgress Succeeded-Deploying; DeploymentCreated; {CREATE}"


@table(
    {
        "offered": (World.of(ready()), "Ready"),
        "applied": (World.of(ready(), graph(), config_map()), f"Ready; patch {WRITTEN}"),
        "another's of the name": (World.of(ready(), graph("u-0"), config_map()), "Ready"),
        "not to be applied any more": (World.of(new(spec=offered)), f"Ready {READY}"),
        "to be applied now": (World.of(ready(spec={"autoApply": True}, **CHANGED)), NOW),
        "to be applied now, by the default": (World.of(ready(spec={}, **CHANGED)), NOW),
        # As the operator 1.2 leaves a request whose graph a user deleted: nothing was switched on since.
        "was to be applied all along": (World.of(ready(spec={"autoApply": True})), "Ready"),
        "reported as without effect, as by a release before this one": (
            World.of(changed(2, spec={"autoApply": True}, **CHANGED)),
            "Ready",
        ),
        "to be applied, and made for another spec": (
            World.of(changed(2, spec={"autoApply": True}, metadata={"generation": 3})),
            "Ready; SpecChangeRejected",
        ),
        "created": (
            World.of(new(), config_map()),
            f"Deploying DeploymentReady-DeploymentInProgress; DeploymentCreated; {CREATE}, patch {WRITTEN}",
        ),
        "there is another's of the name": (World.of(new(), graph("u-0")), IS_REJECTED),
        "refused": (World.of(new(), refusals={CREATE: REFUSED}), IS_REJECTED),
        "serves": (World.of(made(), graph()), SERVES),
        "another replica created it": (World.of(made(), unheard=[graph()]), SERVES),
        "news of both is late": (World.of(made(), outdated=[graph("u-0")], unheard=[graph()]), SERVES),
        "news of its end is late": (World.of(made(), outdated=[graph()]), SERVES),
        "gone before it served": (World.of(made()), IS_LOST),
        "replaced before it served": (World.of(made(), graph("u-0")), IS_REJECTED),
        "on its way": (World.of(made(), graph(state="pending")), "Deploying"),
        "no image": (World.of(made(), graph(state="pending", reason="ErrImagePull")), "Deploying; ImagePullFailed"),
        "serves still": (World.of(deployed(), graph()), "Deployed"),
        "serves, and is not cached": (World.of(deployed(), unheard=[graph()]), "Deployed"),
        "was cached": (World.of(deployed(), outdated=[graph()]), "Deployed"),
        "serves no longer": (
            World.of(deployed(), graph(state="pending")),
            "Deploying DeploymentReady-DeploymentInProgress Succeeded-Deploying; DeploymentDegraded",
        ),
        "gone": (World.of(deployed()), IS_LOST),
        "replaced": (World.of(deployed(), graph("u-0")), IS_LOST),
        "created by a user": (World.of(lost(), graph(), config_map()), f"{SERVES}; patch {WRITTEN}"),
        "created by a user, and on its way": (
            World.of(lost(), graph(state="pending")),
            "Deploying DeploymentReady-DeploymentInProgress Succeeded-Deploying",
        ),
        "the other one is gone": (World.of(rejected(), graph()), SERVES),
        "no one creates it": (World.of(lost()), "Failed"),
        "another's is created": (World.of(lost(), graph("u-0")), "Failed"),
        "on its way out": (World.of(lost(), graph(deletionTimestamp="2026-01-01T00:00:00Z")), "Failed"),
        "it failed before its graph": (World.of(request("Failed", PROFILED, **SELECTION), graph()), "Failed"),
        "nothing was selected": (World.of(request("Failed", UNDER_WAY), graph()), "Failed"),
    }
)
async def test_the_graph_is_created_once_and_followed(given, outcome):
    world = given()
    assert await world.reconcile(times=2) == Result()
    assert await world.outcome() == outcome
    status = await world.status()
    if outcome.startswith(SERVES):
        assert (status["dgdName"], status["deploymentInfo"]) == ("qwen-dgd", {"replicas": 3, "availableReplicas": 2})
    elif outcome == IS_LOST:
        assert not status.keys() & {"dgdName", "deploymentInfo"}


async def test_what_is_created_is_the_requests_and_what_it_reads_outlives_the_request():
    world = World(new(), config_map())
    await world.reconcile()
    graph_made = await world.kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("ns", "qwen-dgd"))
    assert graph_made["metadata"]["labels"][labels.REQUEST_NAME] == "qwen"
    assert graph_made["metadata"]["annotations"][keys.REQUEST_UID] == "u-1"
    assert "ownerReferences" not in graph_made["metadata"]
    assert await owners(world) == ["DynamoGraphDeployment"]
    # One that a user applied of the result may be deleted and applied again.
    world = World(ready(), graph(), config_map())
    await world.reconcile()
    assert await owners(world) == ["DynamoGraphDeploymentRequest", "DynamoGraphDeployment"]


async def test_what_the_operator_1_2_selected_is_created_in_the_version_that_is_stored():
    """It wrote graphs of v1alpha1 into the status, which the API server takes under that version alone."""
    services = {"Worker": {"componentType": "worker", "replicas": 1}}
    old = {**SELECTED, "apiVersion": "nvidia.com/v1alpha1", "spec": {"services": services}}
    world = World(ready(spec={"autoApply": True}, **CHANGED, profilingResults={"selectedConfig": old}))
    await world.reconcile(times=2)
    made = await world.kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("ns", "qwen-dgd"))
    assert (made["apiVersion"], [each["name"] for each in made["spec"]["components"]]) == (
        DYNAMO_GRAPH_DEPLOYMENTS.api_version,
        ["Worker"],
    )
    assert made["metadata"]["annotations"][keys.REQUEST_UID] == "u-1"


async def owners(world: World) -> list[str]:
    read = await world.kube.get(CONFIG_MAPS, ObjectKey("ns", "planner-config-qwen"))
    return [owner["kind"] for owner in read["metadata"]["ownerReferences"]]


@pytest.mark.parametrize(
    ("error", "events"),
    [
        (Unavailable(503, "ServiceUnavailable", "away"), ["DeploymentCreationFailed"]),
        # The request goes with its namespace, and has not failed.
        (NamespaceTerminating(403, "Forbidden", "ns is being terminated"), []),
    ],
)
async def test_a_graph_that_cannot_be_created_now_is_tried_again(error, events):
    world = World(new(), refusals={CREATE: error})
    with pytest.raises(type(error)):
        await world.reconcile()
    assert (await world.status())["phase"] == "Deploying"
    assert [line.split()[1] for line in world.announced.lines] == events


@table(
    {
        "changed": (World.of(ready(**CHANGED)), "Ready Validation-SpecChangeRejected; SpecChangeRejected"),
        "changed while it is profiled": (
            World.of(profiling(**CHANGED)),
            "Profiling Validation-SpecChangeRejected; SpecChangeRejected",
        ),
        "changed before": (World.of(pending(**CHANGED, observedGeneration=1)), "Pending; Initialized"),
        "leaving": (World.of(request(metadata={"deletionTimestamp": "x", "finalizers": ["kept"]})), ""),
        "leaving, and an operator had it": (
            World.of(request(metadata={"deletionTimestamp": "x", "finalizers": ["kept", FINALIZER]})),
            "patch DynamoGraphDeploymentRequest qwen",
        ),
    }
)
async def test_whatever_its_phase_is(given, outcome):
    world = given()
    assert await world.reconcile() == Result()
    assert await world.outcome() == outcome


async def test_a_change_is_rejected_once():
    world = World(ready(**CHANGED))
    await world.reconcile(times=3)
    assert await world.outcome() == "Ready Validation-SpecChangeRejected; SpecChangeRejected"


async def test_of_one_that_is_gone_nothing_happens():
    assert await World().reconcile() == Result()


async def test_the_work_for_one_that_is_leaving_ends():
    world = World(profiling())
    await world.reconcile(times=2)
    assert world.profilings.step("u-1") is not None
    await world.kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, KEY, {"metadata": {"finalizers": [FINALIZER]}})
    await world.kube.delete(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, KEY)
    world.kube.publish(world.cache)
    await world.reconcile()
    assert world.profilings.step("u-1") is None
    with pytest.raises(NotFound):
        await world.status()


@pytest.mark.parametrize(
    ("annotations", "field"),
    [
        ({}, "spec.overrides.dgd.metadata.name"),
        ({keys.PRESERVED_FIELDS: '{"for": "v1alpha1", "version": 1}'}, "spec.deploymentOverrides.name"),
    ],
    ids=["v1beta1", "v1alpha1"],
)
async def test_status_and_events_name_fields_of_the_version_that_the_request_was_written_in(annotations, field):
    world = World(new(metadata={"annotations": annotations}), graph("u-0"))
    await world.reconcile()
    said = [each["message"] for each in (await world.status())["conditions"][-2:]] + world.announced.lines
    assert len(said) == 3
    assert all(f"with {field} in a new request" in each for each in said)
