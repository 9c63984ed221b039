"""The status of checkpoints from Jobs, the agent's report and its Lease; and which checkpoint a component uses."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dynamo_pod_builder import checkpoints
from dynamo_pod_builder.render.checkpoint.job import PlannedCheckpoint
from dynamo_pod_builder.render.checkpoint.target import Storage
from dynamo_pod_builder.starts import KnownCheckpoint
from dynamo_pod_builder.status.checkpoint import (
    FAILED,
    JobObservation,
    JobProgress,
    Obstacle,
    creating,
    followed,
    is_held,
    observe,
    refused,
    termination_message,
)
from dynamo_pod_builder.status.pods import Rank, Trouble
from dynamo_shared.api.conditions import MESSAGE_LIMIT
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DAEMON_SETS,
    DYNAMO_CHECKPOINTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    JOBS,
    POD_SNAPSHOTS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    SNAPSHOT_JOBS,
    ObjectKey,
    Resource,
)
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state.cache import ObjectCache

from tests.unit.routed import tasks_of

from .indexed import indexed

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HASH = "96429b2725761a09"
JOB = f"checkpoint-job-{HASH}-1"
TAKING = PlannedCheckpoint(HASH, "1", Storage("claim", "/checkpoints"))


def job(reported: str = "", **ended: str) -> KubeObject:
    """A Job; `reported` is the agent's report, `ended` its true conditions with their reasons."""
    conditions = [
        {"type": type_, "status": "True", "reason": reason, "message": f"of {reason}"}
        for type_, reason in ended.items()
    ]
    object_labels = {"nvidia.com/snapshot-checkpoint-status": reported} if reported else {}
    return {"metadata": {"name": JOB, "annotations": object_labels}, "status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("observed", "progress", "reason"),
    [
        (job(), JobProgress.UNDER_WAY, "JobRunning"),
        ({"metadata": {"name": JOB}}, JobProgress.UNDER_WAY, "JobRunning"),
        (job("completed"), JobProgress.UNDER_WAY, "JobRunning"),
        (job("completed", Complete="CompletionsReached"), JobProgress.DONE, "JobSucceeded"),
        (job(Complete="CompletionsReached"), JobProgress.UNCONFIRMED, "CheckpointVerificationFailed"),
        (job("failed"), JobProgress.FAILED, "JobFailed"),
        (job("failed", Complete="CompletionsReached"), JobProgress.FAILED, "CheckpointVerificationFailed"),
        (job(Failed="DeadlineExceeded"), JobProgress.FAILED, "JobFailed"),
        (job("completed", Failed="BackoffLimitExceeded"), JobProgress.FAILED, "JobFailed"),
        (job(SuccessCriteriaMet="CompletionsReached"), JobProgress.UNDER_WAY, "JobRunning"),
    ],
)
def test_progress_comes_from_the_job_and_the_report_of_the_agent(
    observed: KubeObject, progress: JobProgress, reason: str
) -> None:
    observation = observe(observed)
    assert (observation.progress, observation.reason) == (progress, reason)


def test_a_failed_job_reports_the_reason_of_kubernetes() -> None:
    assert observe(job(Failed="DeadlineExceeded")).message == "DeadlineExceeded: of DeadlineExceeded"


def trouble(rank: Rank, reason: str) -> Trouble:
    return Trouble(rank, reason, "pod-1", f"of {reason}")


@pytest.mark.parametrize(
    ("actual", "reason", "message"),
    [
        ([], "JobRunning", f"Job {JOB} loads the engine"),
        ([trouble(Rank.IMAGE, "ImagePullBackOff")], "ImagePullBackOff", "pod pod-1: of ImagePullBackOff"),
        # Loading a model may take any time.
        ([trouble(Rank.PROBE, "ReadinessProbeFailing")], "JobRunning", f"Job {JOB} loads the engine"),
    ],
)
def test_problems_of_a_jobs_pods_are_reported(actual: list[Trouble], reason: str, message: str) -> None:
    observed = observe(job(), actual)
    assert (observed.progress, observed.reason, observed.message) == (JobProgress.UNDER_WAY, reason, message)


def pod(**ended: Any) -> KubeObject:
    state = {"terminated": ended} if ended else {"running": {}}
    return {"status": {"containerStatuses": [{"name": "main", "state": state}]}}


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ([], ""),
        ([{}], ""),
        ([pod()], ""),
        ([pod(exitCode=0, reason="Completed")], ""),
        ([pod(exitCode=3, reason="Error")], "container main exited with code 3"),
        ([pod(exitCode=137, reason="OOMKilled")], "container main exited with code 137 (OOMKilled)"),
        ([pod(exitCode=1, reason="Error", message="no model\n")], "container main exited with code 1: no model"),
    ],
)
def test_the_last_output_of_a_pod(pods: list[KubeObject], words: str) -> None:
    assert termination_message(pods) == words


def lease(age: float, duration: int | None = 10, holder: str = "agent") -> KubeObject:
    renewed = (NOW - timedelta(seconds=age)).isoformat().replace("+00:00", "Z")
    return {"spec": {"renewTime": renewed, "leaseDurationSeconds": duration, "holderIdentity": holder}}


@pytest.mark.parametrize(
    ("held", "holds"),
    [
        (None, False),
        ({}, False),
        ({"spec": {"holderIdentity": "agent"}}, False),
        (lease(5), True),
        (lease(15), False),
        (lease(5, holder=""), False),
        (lease(5, duration=None), False),
    ],
)
def test_a_lease_is_held_until_it_expires(held: KubeObject | None, holds: bool) -> None:
    assert is_held(held, NOW) is holds


def checkpoint(name: str = "c", status: KubeObject | None = None, **metadata: Any) -> KubeObject:
    fixed = {"namespace": "ns", "uid": f"uid-{name}", "generation": 2, "resourceVersion": "1"}
    return {
        "metadata": {"name": name, **fixed, "creationTimestamp": "2026-01-01T00:00:00Z", **metadata},
        "spec": {"identity": {"model": "meta-llama/Llama-2-7b-hf", "backendFramework": "vllm"}},
        **({"status": status} if status is not None else {}),
    }


def ready(name: str = "c", **metadata: Any) -> KubeObject:
    taken = checkpoint(name, creating(checkpoint(name), TAKING, NOW), **metadata)
    return {**taken, "status": followed(taken, JobObservation(JobProgress.DONE, "JobSucceeded", "well"), NOW)}


def test_a_message_of_any_length_fits_into_a_status_and_has_no_secrets() -> None:
    """The API server names every mistake in a Job. A status that it refuses for its size reports nothing."""
    words = f"password=hunter2 {'x' * 2_000_000}"
    taken = checkpoint(status=creating(checkpoint(), TAKING, NOW))
    for status in (
        refused(checkpoint(), HASH, Obstacle(FAILED, "RefusedByApiServer", words), NOW),
        followed(taken, JobObservation(JobProgress.UNDER_WAY, "Crashed", words), NOW),
        followed(taken, JobObservation(JobProgress.FAILED, "JobFailed", words), NOW),
    ):
        assert len(status["message"]) <= MESSAGE_LIMIT
        assert "hunter2" not in status["message"]
        assert status["conditions"][-1]["message"] == status["message"]


def test_a_checkpoint_with_another_artifact_version_is_not_ready() -> None:
    assert KnownCheckpoint.of(ready()).is_ready
    assert not KnownCheckpoint.of(ready(annotations={"nvidia.com/snapshot-artifact-version": "2"})).is_ready
    assert not KnownCheckpoint.of(checkpoint("c", creating(checkpoint("c"), TAKING, NOW))).is_ready


def cache_of(*observed: KubeObject) -> ObjectCache:
    return indexed(*observed, of=DYNAMO_CHECKPOINTS)


def test_the_oldest_checkpoint_of_an_identity_is_used() -> None:
    later = checkpoint("a", creationTimestamp="2026-01-02T00:00:00Z")
    leaving = checkpoint("b", creationTimestamp="2025-01-01T00:00:00Z", deletionTimestamp="2026-01-01T00:00:00Z")
    result = checkpoints.of_identity(cache_of(later, leaving, checkpoint("z"), checkpoint("y")), "ns", HASH)
    assert result is not None
    assert result.name == "y"
    assert checkpoints.of_identity(cache_of(checkpoint()), "other", HASH) is None
    assert checkpoints.of_identity(cache_of({**checkpoint(), "spec": {}}), "ns", HASH) is None


def test_checkpoints_are_packed_and_a_choice_among_them_unpacks_none(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ObjectCache()
    cache.pack(DYNAMO_CHECKPOINTS)
    checkpoints.index(cache)
    for number in range(200):
        cache.put(DYNAMO_CHECKPOINTS, checkpoint(f"c-{number:03}"))
    monkeypatch.setattr("dynamo_shared.state.packer.Packer.unpack_sized", None)
    result = checkpoints.of_identity(cache, "ns", HASH)
    assert result is not None
    assert result.name == "c-000"


def graph(name: str, experimental: KubeObject | None = None) -> KubeObject:
    component = {"name": "Worker", **({"experimental": experimental} if experimental else {})}
    metadata = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {"components": [component]}}


def woken(old: KubeObject | None, new: KubeObject | None, *others: KubeObject) -> set[str]:
    cache = cache_of(*others)
    cache.put(DYNAMO_GRAPH_DEPLOYMENTS, graph("plain"))
    cache.put(DYNAMO_GRAPH_DEPLOYMENTS, graph("starting", {"checkpoint": {"checkpointRef": "c"}}))
    return {
        str(task) for task in tasks_of(checkpoints.routes(cache), DYNAMO_CHECKPOINTS, ObjectKey("ns", "c"), old, new)
    }


STARTING = str(Task.of(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("ns", "starting")))
NEXT = str(Task.of(DYNAMO_CHECKPOINTS, ObjectKey("ns", "next")))


@pytest.mark.parametrize(
    ("old", "new", "tasks"),
    [
        (None, checkpoint(), {STARTING}),
        (checkpoint(), ready(), {STARTING}),
        (ready(), ready(labels={"a": "b"}), set()),
        (checkpoint(status={"phase": "Creating"}), checkpoint(status={"phase": "Creating", "message": "m"}), set()),
        (ready(), None, {STARTING, NEXT}),
    ],
    ids=["created", "ready", "of no matter", "progress", "gone"],
)
def test_a_changed_checkpoint_reconciles_its_successors_and_the_graphs_that_use_it(
    old: KubeObject | None, new: KubeObject | None, tasks: set[str]
) -> None:
    assert woken(old, new, checkpoint("next")) == tasks


def test_a_changed_agent_reconciles_all_checkpoints_and_their_graphs() -> None:
    cache = cache_of(checkpoint())
    cache.put(DYNAMO_GRAPH_DEPLOYMENTS, graph("starting", {"checkpoint": {"checkpointRef": "c"}}))
    tasks = tasks_of(
        checkpoints.routes(cache), DAEMON_SETS, ObjectKey("ns", "agent"), None, {"metadata": {"name": "agent"}}
    )
    assert {str(task) for task in tasks} == {str(Task.of(DYNAMO_CHECKPOINTS, ObjectKey("ns", "c"))), STARTING}


def test_the_status_of_an_agent_reconciles_nothing() -> None:
    cache = cache_of(checkpoint())
    old = {"metadata": {"name": "agent"}, "spec": {"template": {}}, "status": {"numberReady": 1}}
    new = {**old, "status": {"numberReady": 2}}
    assert tasks_of(checkpoints.routes(cache), DAEMON_SETS, ObjectKey("ns", "agent"), old, new) == []


def test_a_changed_pod_snapshot_reconciles_only_graphs_that_start_from_it() -> None:
    cache = cache_of()
    named = {"checkpoint": {"checkpointRef": "mine"}}
    for each in (
        graph("names", named),
        graph("other", {"checkpoint": {"enabled": True}}),
        graph("taken"),
        graph("off"),
    ):
        cache.put(DYNAMO_GRAPH_DEPLOYMENTS, each)
    of_graph = {"nvidia.com/dynamo-graph-deployment-name": "taken"}
    job: KubeObject = {
        "metadata": {"name": "job", "namespace": "ns", "uid": "j", "resourceVersion": "1", "labels": of_graph},
        "status": {"podSnapshotName": "mine"},
    }
    cache.put(SNAPSHOT_JOBS, job)
    rows = checkpoints.routes(cache)

    def asked(resource: Resource, name: str, old: KubeObject | None, new: KubeObject | None) -> set[str]:
        return {str(task) for task in tasks_of(rows, resource, ObjectKey("ns", name), old, new)}

    snapshot = {"metadata": {"name": "mine", "namespace": "ns", "uid": "s", "resourceVersion": "1"}}
    of_names, of_taken = (str(Task.of(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("ns", name))) for name in ("names", "taken"))
    assert asked(POD_SNAPSHOTS, "mine", snapshot, {**snapshot, "status": {}}) == {of_names, of_taken}
    assert asked(POD_SNAPSHOTS, "another", snapshot, None) == set()
    assert asked(SNAPSHOT_JOBS, "job", job, {**job, "status": {}}) == {of_taken}
    bare = {**job, "metadata": {**job["metadata"], "labels": {}}}
    assert asked(SNAPSHOT_JOBS, "job", job, bare) == {of_taken}
    assert asked(SNAPSHOT_JOBS, "job", None, bare) == set()


@pytest.mark.parametrize("resource", [JOBS, RESOURCE_CLAIM_TEMPLATES], ids=lambda each: each.plural)
def test_a_freed_name_reconciles_the_next_checkpoint(resource: Resource) -> None:
    rows, key = checkpoints.routes(cache_of(checkpoint("next"))), ObjectKey("ns", JOB)
    owner = {"kind": "DynamoCheckpoint", "name": "c", "uid": "u", "controller": True}
    child = {"metadata": {"name": JOB, "namespace": "ns", "ownerReferences": [owner]}}
    ending = {"metadata": {**child["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    foreign = {"metadata": {"name": JOB, "namespace": "ns"}}
    assert [str(task) for task in tasks_of(rows, resource, key, ending, None)] == [NEXT]
    assert tasks_of(rows, resource, key, child, ending) == []
    assert tasks_of(rows, resource, key, foreign, None) == []


def test_a_pod_with_a_problem_reconciles_its_checkpoint() -> None:
    owner = {"kind": "DynamoCheckpoint", "name": "c", "uid": "u", "controller": True}
    cache = cache_of()
    metadata = {"name": JOB, "namespace": "ns", "uid": "j", "resourceVersion": "1", "ownerReferences": [owner]}
    cache.put(JOBS, {"metadata": metadata})
    object_labels = {"nvidia.com/snapshot-is-checkpoint-source": "true", "batch.kubernetes.io/job-name": JOB}
    fine = {"metadata": {"name": "p", "labels": object_labels}, "status": {"phase": "Pending"}}
    unplaced = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no GPU"}
    held_up = {**fine, "status": {"phase": "Pending", "conditions": [unplaced]}}
    key = ObjectKey("ns", "p")
    assert tasks_of(checkpoints.routes(cache), PODS, key, fine, {**fine}) == []
    assert tasks_of(checkpoints.routes(cache), PODS, key, fine, held_up) == [
        Task.of(DYNAMO_CHECKPOINTS, ObjectKey("ns", "c"))
    ]
    other = {"metadata": {"name": "p"}, "status": held_up["status"]}
    assert tasks_of(checkpoints.routes(cache), PODS, key, None, other) == []
