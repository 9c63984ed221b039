"""RequestReconciler: validation, profiling, and what holds in any phase; a row has all that one reconcile does."""

from __future__ import annotations

from functools import partial

import pytest
from dynamo_profiler.profiling.rapid import LARGE_REQUEST
from dynamo_profiler.profiling.results import ProfilingFailed, ProfilingRequest
from dynamo_profiler.requests.reconciler import FINALIZER, POD_INTERVAL
from dynamo_shared.api.registry import labels
from dynamo_shared.api.request_graphs import marked
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from dynamo_shared.kube.errors import MissingRight, NotFound
from dynamo_shared.runtime import Result

from tests.building.tables import conditions, table

from .request_world import (
    CHANGED,
    DONE,
    HARDWARE,
    KEY,
    NO_RIGHT,
    READY,
    REFUSED,
    SELECTED,
    VALID,
    WRITTEN,
    World,
    config_map,
    graph,
    job,
    offered,
    output,
    pending,
    profiling,
    ready,
    request,
    result,
    stored,
)

REFUSAL = "Failed Validation-ValidationFailed Succeeded-ValidationFailed"
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
        ({}, (), f"Pending {VALID}", "Initialized", "the hardware for planning is known"),
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
        (
            {"searchStrategy": "thorough", "hardware": {**HARDWARE, "gpuSku": "gb300"}},
            (),
            REFUSAL,
            "ValidationFailed",
            "does not support gb300: choose nodes with one of vr_nvl72, gb200,",
        ),
        ({"hardware": {**HARDWARE, "gpuSku": "gb300"}}, (), f"Pending {VALID}", "Initialized", ""),
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


async def test_a_large_request_is_validated_and_generated_in_threads():
    """Of a megabyte of overrides either takes a third of a second."""
    obj = request(spec={"overrides": {"dgd": {"metadata": {"labels": {f"l{number}": "x" for number in range(2000)}}}}})
    world = World(obj, ends=result())
    await world.reconcile(times=6)
    assert (await world.status())["dgdName"] == "qwen-dgd"
    assert world.large.lanes == ["ns", "ns"]
    assert min(world.large.sizes) > LARGE_REQUEST


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
async def test_a_request_is_profiled_for_the_hardware_in_its_status(hardware, source, product, planned):
    world = World(request(spec={"hardware": hardware}), NODE)
    await world.reconcile(times=4)
    status = (await world.status())["hardware"]
    assert (status["source"], status["planned"]) == (source, planned)
    (asked,) = world.asked
    assert asked.spec.hardware is not None
    assert asked.spec.hardware.model_dump(by_alias=True, exclude_none=True) == planned
    assert asked.gpu_product == product
    world.profilings.stop("u-1")


@pytest.mark.parametrize(("others", "says"), [(0, "no GPU"), (8, "starting")])
async def test_only_a_few_pods_with_the_jobs_label_are_read(others, says):
    """Each may have a megabyte, and all were read every ten seconds."""
    no_node = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no GPU"}]}
    pods = [stored(PODS, f"pod-{number}") for number in range(others)]
    pods.append(stored(PODS, "pod-last", status=no_node))
    for each in pods:
        each["metadata"]["labels"] = {labels.PROFILER_REQUEST: "qwen"}
    world = World(measuring(), job(), *pods)
    await world.reconcile(times=2)
    assert says in str(await world.status())


@pytest.mark.parametrize(
    "obj", [pending, profiling, ready, partial(request, "Failed", REFUSAL.removeprefix("Failed "))]
)
async def test_a_successful_reconcile_clears_the_failure(obj):
    failed = obj()
    failed["status"]["conditions"] += conditions("Reconciled-ReconcileFailed")
    world = World(failed)
    await world.reconcile(times=2)
    assert "Reconciled" not in str((await world.status())["conditions"])
    world.profilings.stop("u-1")


def no_candidates(_: ProfilingRequest) -> None:
    raise ProfilingFailed("NoCandidates", "no engine fits")


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
            f"Failed Profiling-JobCreationFailed Succeeded-JobCreationFailed; ProfilingJobFailed; {RIGHTS}",
        ),
    }
)
async def test_profiling_starts(given, outcome):
    world = given()
    assert await world.reconcile() == Result(POD_INTERVAL if outcome.startswith("Pending") else None)
    assert await world.outcome() == outcome
    name = (await world.status()).get("profilingJobName")
    assert name == ("profile-qwen" if "ProfilingJobCreated" in outcome else None)


@pytest.mark.parametrize(
    ("given", "write", "event"),
    [
        (partial(World.of, pending(spec=thorough)), "create Job profile-qwen", "ProfilingJobFailed"),
        (partial(World.of, profiling(), ends=result(reads=True)), f"create {WRITTEN}", "ConfigMapCreationFailed"),
    ],
)
async def test_a_missing_right_of_the_profiler_does_not_end_a_request(given, write, event):
    world = given(refusals={write: NO_RIGHT})()
    before = (await world.status()).get("phase")
    with pytest.raises(MissingRight):
        await world.reconcile(times=2)
    waits = await world.status()
    assert waits.get("phase", "Pending") == (before or "Pending")
    assert str(NO_RIGHT) in [each["message"] for each in waits["conditions"] if each["type"] == "Reconciled"]
    assert [line.split()[1] for line in world.announced.lines][:1] == [event]
    world.kube.refusals.clear()
    await world.reconcile()
    continues = await world.status()
    assert continues["phase"] != "Failed"
    assert "Reconciled" not in [each["type"] for each in continues["conditions"]]


measuring = partial(profiling, spec={**thorough, **offered})


async def test_large_outputs_of_jobs_are_read_one_at_a_time_for_each_namespace():
    """Each took seconds in a thread of the event loop, which also resolves names, and of any namespace."""
    large = output(profiler_status="success", **{"final_config.yaml": "x" * 900_000})
    world = World(measuring(), large, ends=result())
    await world.reconcile()
    assert world.large.lanes == ["ns", "ns"]
    assert world.large.sizes[0] > 900_000


def fails(reason: str) -> str:
    return f"Failed Profiling-{reason} Succeeded-{reason}; ProfilingCheckFailed"


THROUGH = output(profiler_status="success", **{"final_config.yaml": "{"})
MEASURED = f"Ready {DONE} ObjectiveMet+ObjectiveMet {READY}; SpecGenerated"
NOT_WRITTEN = "Failed SpecGenerated-GenerationFailed Succeeded-GenerationFailed; ConfigMapCreationFailed"
IS_DELETED = fails("JobDeleted")
RUNS, IS_COMPLETE = output(profiler_status="running"), job(end="Complete")
TOO_LATE = job(end="Failed", reason="DeadlineExceeded")
BROKEN = output(phase="SweepingDecode", profiler_status="failed", profiler_error="none fits")


@table(
    {
        "under way": (World.of(profiling()), "Profiling Profiling-SweepingPrefill"),
        "failed at a step": (
            World.of(profiling(), ends=ProfilingFailed("", "no engine fits")),
            fails("SweepingPrefillFailed"),
        ),
        "failed for a reason of its own": (
            World.of(profiling(), ends=ProfilingFailed("NoFigures", "no figures")),
            fails("NoFigures"),
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
            "Failed DeploymentReady-DeploymentRejected Succeeded-DeploymentRejected; DeploymentRejected",
        ),
        "the status has no room for the result": (
            World.of(profiling(spec={"image": "x" * 900_000}), ends=result(size=900_000)),
            "Failed SpecGenerated-GenerationFailed Succeeded-GenerationFailed; ProfilingCheckFailed",
        ),
        "a ConfigMap of another author has the name": (
            World.of(profiling(), config_map(""), ends=result(reads=True)),
            NOT_WRITTEN,
        ),
        "a ConfigMap is refused": (
            World.of(profiling(), ends=result(reads=True), refusals={f"create {WRITTEN}": REFUSED}),
            NOT_WRITTEN,
        ),
        "a Job under way": (
            World.of(measuring(), job(), output(phase="SweepingDecode")),
            "Profiling Profiling-SweepingDecode",
        ),
        "the profiler of a Job failed": (World.of(measuring(), job(), BROKEN), fails("SweepingDecodeFailed")),
        "news of its Job is late": (World.of(measuring(), outdated=[job("u-0")], unheard=[job()]), "Profiling"),
        "a Job is deleted": (World.of(measuring()), IS_DELETED),
        "a Job is deleted before it has written all": (World.of(measuring(), RUNS), IS_DELETED),
        "a Job ends without a result": (World.of(measuring(), IS_COMPLETE), fails("OutputMissing")),
        "the time of a Job is over": (World.of(measuring(), TOO_LATE, RUNS), fails("BudgetExceeded")),
        "a Job is through": (World.of(measuring(), IS_COMPLETE, THROUGH, ends=result()), MEASURED),
        # The TTL that the request gives it may pass while the platform is down.
        "a Job is through, and gone": (World.of(measuring(), THROUGH, ends=result()), MEASURED),
        "a Job is through, and gone, and news of its output is late": (
            World.of(measuring(), unheard=[THROUGH], ends=result()),
            MEASURED,
        ),
        "the end of a Job is heard of before its output": (
            World.of(measuring(), IS_COMPLETE, outdated=[RUNS], unheard=[THROUGH], ends=result()),
            MEASURED,
        ),
        "a Job had written all when its time was over": (
            World.of(measuring(), TOO_LATE, THROUGH, ends=result()),
            MEASURED,
        ),
        "the Job of an earlier request is remembered": (
            World.of(measuring(), outdated=[job("u-0", "Failed")], unheard=[IS_COMPLETE, THROUGH], ends=result()),
            MEASURED,
        ),
        "what a Job has written cannot be read": (
            World.of(measuring(), job(), THROUGH, ends=KeyError("containers")),
            fails("GenerationFailed"),
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
    assert {*world.announced.events} <= {"profiling", status["phase"].lower()}
    assert world.announced.events[-1] == status["phase"].lower()
    if "SpecGenerated+" in outcome:
        assert (status["dgdName"], status["profilingPhase"]) == ("qwen-dgd", "Done")
        assert status["profilingResults"]["selectedConfig"] == marked(request(), SELECTED, owner=None)
    world.profilings.stop("u-1")


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
async def test_a_changed_or_deleted_request_has_the_expected_outcome(given, outcome):
    world = given()
    assert await world.reconcile() == Result()
    assert await world.outcome() == outcome


async def test_a_change_is_rejected_once():
    world = World(ready(**CHANGED))
    await world.reconcile(times=3)
    assert await world.outcome() == "Ready Validation-SpecChangeRejected; SpecChangeRejected"


async def test_a_missing_request_is_ignored():
    assert await World().reconcile() == Result()


async def test_the_work_for_a_deleted_request_ends():
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
