"""CheckpointReconciler: what prevents a checkpoint, and what is reported about it."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest
from dynamo_pod_builder import checkpoints
from dynamo_pod_builder.applier import Applier
from dynamo_pod_builder.pod_events import PodEvents
from dynamo_pod_builder.reconcilers.checkpoint import CONFIRM, CheckpointReconciler
from dynamo_pod_builder.reconcilers.requeue import LACKING_INTERVAL, RETRY_REFUSED
from dynamo_pod_builder.render import CheckpointDefaults, RenderConfig
from dynamo_pod_builder.render.checkpoint.identity import identity_hash
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import SNAPSHOT_ARTIFACT_VERSION, SNAPSHOT_STATUS
from dynamo_shared.api.registry.labels import CHECKPOINT_ID, JOB_NAME
from dynamo_shared.api.resources import DYNAMO_CHECKPOINTS, EVENTS, JOBS, LEASES, PODS, ObjectKey, controller_reference
from dynamo_shared.api.v1alpha1 import identity_of
from dynamo_shared.kube import get_if_present
from dynamo_shared.kube.errors import Invalid
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.runtime.tasks import Task

from tests.building.clock import ManualClock
from tests.building.memory_kube import MemoryKube
from tests.building.objects import object_of, with_metadata
from tests.building.recorded_offload import RecordedOffload
from tests.building.tables import conditions, outcome_of, table
from tests.unit.announced import Announced
from tests.unit.routed import tasks_of

from .graph.building import NOW
from .indexed import indexed

IDENTITY = {"model": "m", "backendFramework": "vllm"}
POD = {"containers": [{"name": "main", "image": "i", "command": ["python3", "-m", "dynamo.vllm"]}]}
SPEC = {"identity": IDENTITY, "job": {"podTemplateSpec": {"spec": POD}}}
PARSED = identity_of({"spec": SPEC})
assert PARSED is not None
DIGEST = identity_hash(PARSED)
KEY = ObjectKey("ns", "one")
JOB = f"checkpoint-job-{DIGEST}-1"
STORED = CheckpointDefaults(enabled=True, claim="claim", base_path="/checkpoints")


def checkpoint(
    name: str = "one", created: str = "2026-01-02T00:00:00Z", spec: KubeObject | None = SPEC, **metadata: Any
) -> KubeObject:
    fields = {"labels": {CHECKPOINT_ID: DIGEST}, **({"spec": spec} if spec is not None else {}), **metadata}
    return object_of(DYNAMO_CHECKPOINTS, name, uid=name, resourceVersion="1", creationTimestamp=created, **fields)


class World:
    """The reconciler with an in-memory API server; the cache does not have the objects `unheard` yet."""

    def __init__(
        self, *observed: KubeObject, unheard: Iterable[KubeObject] = (), config: CheckpointDefaults = STORED
    ) -> None:
        self.kube, self.cache, self.announced = MemoryKube(*observed), indexed(), Announced()
        self.kube.publish(self.cache)
        for obj in unheard:
            self.kube.put(obj)
        self.before: KubeObject = observed[0].get("status", {}) if observed else {}
        self.large = RecordedOffload()
        kube: Any = self.kube
        self.reconciler = CheckpointReconciler(
            kube,
            self.cache,
            Applier(kube, self.cache),
            StatusWriter(kube, self.cache, ManualClock()),
            self.announced,
            lambda: RenderConfig(checkpoints=config),
            lambda: NOW,
            self.large,
            PodEvents(kube),
        )

    async def reconcile(self) -> Result:
        return await self.reconciler.reconcile(KEY)

    async def status(self) -> KubeObject:
        stored = await get_if_present(self.kube, DYNAMO_CHECKPOINTS, KEY)  # type: ignore[arg-type]
        return (stored or {}).get("status", {})

    async def outcome(self) -> str:
        return outcome_of(self.before, await self.status(), self.announced, self.kube)


async def reconciled(config: CheckpointDefaults, *observed: KubeObject) -> tuple[KubeObject, list[str]]:
    world = World(*observed, config=config)
    assert await world.reconcile() == Result()
    return await world.status(), world.announced.lines


def leaving(obj: KubeObject) -> KubeObject:
    return with_metadata(obj, deletionTimestamp="2026-01-01T00:00:00Z")


async def test_a_checkpoint_is_read_and_rendered_as_work_on_a_large_object() -> None:
    """Both take a tenth of a second with 25,000 variables, and several checkpoints have their turn at once."""
    world = World(checkpoint())
    await world.reconcile()
    assert world.large.lanes == ["ns", "ns"]


OLDER = checkpoint("older", "2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("config", "observed", "phase", "reason"),
    [
        pytest.param(STORED, [checkpoint(spec=None)], "Failed", "InvalidSpec", id="no spec"),
        pytest.param(
            STORED, [checkpoint(spec={**SPEC, "identity": {"model": 3}})], "Failed", "InvalidSpec", id="not to be read"
        ),
        pytest.param(CheckpointDefaults(), [checkpoint()], "Failed", "CheckpointsDisabled", id="switched off"),
        pytest.param(CheckpointDefaults(enabled=True), [checkpoint()], "Pending", "NoStorage", id="nowhere to keep it"),
        pytest.param(STORED, [checkpoint(), OLDER], "Failed", "AlreadyOwned", id="another one has its identity"),
    ],
)
async def test_what_prevents_a_checkpoint_is_reported(config, observed, phase, reason):
    status, (event,) = await reconciled(config, *observed)
    assert (status["phase"], status["conditions"][0]["reason"]) == (phase, reason)
    assert event.startswith(f"Warning Checkpoint{'Failed' if phase == 'Failed' else 'Waiting'} Checkpoint: {reason}: ")


async def test_a_checkpoint_in_phase_creating_without_a_job_starts():
    creating = {**checkpoint(), "status": {"phase": "Creating"}}
    status, _ = await reconciled(CheckpointDefaults(enabled=True), creating)
    assert (status["phase"], status["conditions"][0]["reason"]) == ("Pending", "NoStorage")


@pytest.mark.parametrize("observed", [[], [leaving(checkpoint())]], ids=["gone", "leaving"])
async def test_a_deleted_checkpoint_is_left_alone(observed):
    assert await reconciled(STORED, *observed) == ({}, [])


async def test_a_checkpoint_that_is_being_deleted_does_not_keep_its_identity():
    status, _ = await reconciled(CheckpointDefaults(enabled=True), checkpoint(), leaving(OLDER))
    assert status["conditions"][0]["reason"] == "NoStorage"


@pytest.mark.parametrize("how", ["gone", "another identity"])
def test_checkpoints_of_a_freed_identity_are_reconciled(how):
    other = checkpoint("older", spec={**SPEC, "identity": {**IDENTITY, "model": "other"}})
    new = {"gone": None, "another identity": other}
    cache = indexed(checkpoint(), of=DYNAMO_CHECKPOINTS)
    asked = tasks_of(checkpoints.routes(cache), DYNAMO_CHECKPOINTS, ObjectKey("ns", "older"), OLDER, new[how])
    assert Task.of(DYNAMO_CHECKPOINTS, ObjectKey("ns", "one")) in asked


def taker(end: str = "", reason: str = "", word: str = "", uid: str = "one", version: int = 1) -> KubeObject:
    """The Job of a checkpoint, how it ended, and the report of the snapshot agent."""
    owners = [controller_reference(DYNAMO_CHECKPOINTS, "one", uid)]
    annotations = {"annotations": {SNAPSHOT_STATUS: word}} if word else {}
    status = {"conditions": [{"type": end, "status": "True", "reason": reason}] if end else []}
    name = f"checkpoint-job-{DIGEST}-{version}"
    return object_of(JOBS, name, ownerReferences=owners, spec={}, status=status, **annotations)


def pod(**status: Any) -> KubeObject:
    owner = controller_reference(JOBS, JOB, f"uid-of-{JOB}")
    return object_of(PODS, "pod", labels={JOB_NAME: JOB}, ownerReferences=[owner], status=status)


def creating(phase: str = "Creating", job: str = JOB, **metadata: Any) -> KubeObject:
    """A checkpoint whose Job was created."""
    known = {"phase": phase, "jobName": job, "conditions": conditions("JobCreated+JobCreated JobCompleted-JobRunning")}
    return {**checkpoint(**metadata), "status": known}


ROOM = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"}
LEASE = {
    **LEASES.type_meta,
    "metadata": {"name": JOB, "namespace": "ns"},
    "spec": {"holderIdentity": "agent", "leaseDurationSeconds": 60, "renewTime": "2026-01-02T03:04:00.000000Z"},
}
ACCESS = ", ".join(
    f"create {kind} one-k8s-service-discovery{end}"
    for kind, end in (("ServiceAccount", ""), ("Role", "-role"), ("RoleBinding", "-binding"))
)
BEGINS = "Creating JobCreated+JobCreated JobCompleted-JobRunning; CheckpointJobCreated"
NO_QUOTA = object_of(
    EVENTS,
    "refused",
    type="Warning",
    reason="FailedCreate",
    note='Error creating: pods "job-x7" is forbidden: exceeded quota: few',
    deprecatedLastTimestamp="2026-01-02T03:05:00Z",
)
FAILS = "Failed JobCompleted"
TAKEN = "Ready JobCompleted+JobSucceeded; CheckpointReady"
COMPLETED = taker("Complete", word="completed")


@table(
    {
        "begins": (partial(World, checkpoint()), f"{BEGINS}; {ACCESS}, create Job {JOB}"),
        "its label is missing": (
            partial(World, checkpoint(labels={})),
            f"{BEGINS}; patch DynamoCheckpoint one, {ACCESS}, create Job {JOB}",
        ),
        "a stop right after its Job was made": (partial(World, checkpoint(), unheard=[taker()]), f"{BEGINS}; {ACCESS}"),
        "the Job of an earlier checkpoint has the name": (
            partial(World, checkpoint(), taker(uid="earlier")),
            f"Pending JobCreated-NameTaken; CheckpointWaiting; {ACCESS}",
        ),
        "under way": (partial(World, creating(), taker()), "Creating"),
        "news of its Job is late": (partial(World, creating(), unheard=[taker()]), "Creating"),
        "no node takes its pod": (
            partial(World, creating(), taker(), pod(phase="Pending", conditions=[ROOM])),
            "Creating JobCompleted-Unschedulable; Unschedulable",
        ),
        "its pod is refused": (
            partial(World, creating(), taker(), NO_QUOTA),
            "Creating JobCompleted-QuotaExceeded; QuotaExceeded",
        ),
        "taken": (partial(World, creating(), COMPLETED), TAKEN),
        "its time is over": (
            partial(World, creating(), taker("Failed", "DeadlineExceeded")),
            f"{FAILS}-JobFailed; CheckpointFailed",
        ),
        "the engine ends without the agent": (
            partial(World, creating(), taker("Complete")),
            f"{FAILS}-CheckpointVerificationFailed; CheckpointFailed",
        ),
        "the agent is at work yet": (partial(World, creating(), taker("Complete"), LEASE), "Creating"),
        "the word of the agent is late": (partial(World, creating(), taker("Complete"), unheard=[COMPLETED]), TAKEN),
        "news of its Job comes late": (partial(World, creating(), taker(uid="earlier"), unheard=[taker()]), "Creating"),
        "its Job is deleted": (partial(World, creating()), f"{FAILS}-JobDeleted; CheckpointFailed"),
        "another's Job has the name": (
            partial(World, creating(), taker(uid="earlier")),
            f"{FAILS}-JobDeleted; CheckpointFailed",
        ),
        "ready": (partial(World, creating("Ready")), "Ready"),
        "failed": (partial(World, creating("Failed")), "Failed"),
        "another version is asked for": (
            partial(World, creating("Failed", annotations={SNAPSHOT_ARTIFACT_VERSION: "2"})),
            f"Creating; CheckpointJobCreated; {ACCESS}, create Job checkpoint-job-{DIGEST}-2",
        ),
    }
)
async def test_a_job_is_created_once_and_its_progress_is_reported(given, outcome):
    world = given()
    after = (await world.reconcile()).requeue_after
    assert await world.outcome() == outcome
    is_at_work = any(line == LEASE for line in given.args)
    assert (after == CONFIRM) is is_at_work
    if NO_QUOTA in given.args:
        assert (await world.status())["message"] == f"pod of {JOB}: exceeded quota: few"
        assert after == LACKING_INTERVAL
    if outcome.startswith("Ready JobCompleted"):
        status = await world.status()
        assert status["createdAt"] == "2026-01-02T03:04:05Z"
        assert [each["type"] for each in status["conditions"]] == ["JobCreated", "JobCompleted"]
    if "create Job" in outcome:
        assert (await world.status())["location"] == f"/checkpoints/{DIGEST}/versions/{outcome[-1]}"


async def test_a_refused_label_is_reported():
    """The queue retried the patch, and the checkpoint had no status."""
    world = World(checkpoint(labels={}))
    world.kube.refusals["patch DynamoCheckpoint one"] = Invalid(422, "Invalid", "a policy forbids labels")
    assert await world.reconcile() == Result(RETRY_REFUSED)
    assert await world.outcome() == "Failed JobCreated-RefusedByApiServer; CheckpointFailed"
    assert "a policy forbids labels" in (await world.status())["message"]
    world.kube.refusals.clear()
    await world.reconcile()
    assert (await world.status())["phase"] == "Creating"


async def test_a_refused_label_does_not_replace_the_status_of_a_job_under_way():
    world = World(creating(labels={}), taker())
    world.kube.refusals["patch DynamoCheckpoint one"] = Invalid(422, "Invalid", "a policy forbids labels")
    with pytest.raises(Invalid):
        await world.reconcile()
    assert await world.outcome() == "Creating"


async def test_a_failed_job_reports_how_its_containers_ended():
    ended = [{"name": "main", "state": {"terminated": {"exitCode": 3, "reason": "Error", "message": "no such model"}}}]
    world = World(creating(), taker("Failed", "BackoffLimitExceeded"), pod(phase="Failed", containerStatuses=ended))
    await world.reconcile()
    assert "container main exited with code 3: no such model" in (await world.status())["message"]


async def test_large_pods_with_the_label_of_a_failed_job_are_not_read():
    """Every user may give it to any number of pods: twenty large ones took half a gigabyte."""
    ended = [{"name": "main", "state": {"terminated": {"exitCode": 3, "message": "no such model"}}}]
    large = pod(phase="Failed", containerStatuses=ended, message="x" * 3_000_000)
    world = World(creating(), taker("Failed", "BackoffLimitExceeded"), large)
    await world.reconcile()
    status = await world.status()
    assert (status["phase"], "exited" in status["message"]) == ("Failed", False)
