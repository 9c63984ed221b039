"""What a component starts from with the Snapshot operator, and the progress of that. Pure.

Source: Dynamo 1.5, deploy/operator `internal/controller/dgd_checkpoints_reconciler.go` (`resolveAutomaticSnapshotJob`)
and `internal/checkpoint/podspec.go` (`ApplyRestoreCandidateMetadata`).

1. The component names a PodSnapshot: pods are annotated with it when it is ready, so that they are replaced then.
2. A PodSnapshot is taken of the component itself: pods are annotated with its SnapshotJob from the start. No pod is
   replaced when it is ready; pods that are created later start from it.
3. The PodSnapshot cannot be taken or used: pods start without it, or, if they must wait for it, none starts and the
   graph has failed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dynamo_shared.api import objects, snapshots
from dynamo_shared.api.objects import MAIN, KubeObject
from dynamo_shared.api.registry import annotations
from dynamo_shared.api.resources import POD_SNAPSHOTS, SNAPSHOT_JOBS
from dynamo_shared.api.untrusted.reading import text
from dynamo_shared.api.v1beta1.experimental import ComponentCheckpoint

from dynamo_pod_builder.render.checkpoint.capture import hash_of

#: Reasons of the graph's condition, the most serious first.
NOT_INSTALLED, NOT_CAPTURED, FAILED = "SnapshotNotInstalled", "NotCapturable", "CheckpointFailed"
UNUSABLE, NOT_THERE, PENDING, READY = "CheckpointUnusable", "CheckpointMissing", "CheckpointPending", "CheckpointsReady"
REASONS = (NOT_INSTALLED, NOT_CAPTURED, FAILED, UNUSABLE, NOT_THERE, PENDING, READY)


@dataclass(frozen=True, slots=True)
class SnapshotStart:
    """The PodSnapshot of one component: `name` is "" until it is known."""

    name: str
    reason: str
    message: str
    #: Whether it can only become ready after a change of the graph or the cluster.
    fails: bool = False
    #: Whether it is taken of the component itself.
    is_automatic: bool = False
    #: The annotations of pods.
    candidate: Mapping[str, str] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        """Whether pods can start from it."""
        return self.reason == READY

    @property
    def status(self) -> KubeObject:
        """Its entry in `status.checkpoints` of a graph."""
        return {"checkpointName": self.name, "ready": self.ready}


def not_installed(name: str) -> SnapshotStart:
    """For a cluster without the Snapshot operator."""
    message = (
        "the cluster does not serve PodSnapshots and SnapshotJobs: install NVIDIA's Snapshot operator, or name a "
        "DynamoCheckpoint"
    )
    return SnapshotStart(name, NOT_INSTALLED, message, fails=True, is_automatic=not name)


def of_name(desired: ComponentCheckpoint, snapshot: KubeObject | None, capture: KubeObject) -> SnapshotStart:
    """The PodSnapshot that a component names, from its stored object and the component's own SnapshotJob."""
    name, digest = desired.checkpoint_ref or "", hash_of(capture)
    if snapshot is None:
        missing = f"there is neither a PodSnapshot nor a DynamoCheckpoint {name} in the namespace"
        return SnapshotStart(name, NOT_THERE, missing)
    if problem := snapshots.problem_of(snapshot, digest):
        return SnapshotStart(name, UNUSABLE, f"PodSnapshot {name} {problem}", fails=True)
    if not snapshots.is_ready(snapshot):
        return SnapshotStart(name, PENDING, f"PodSnapshot {name} is not ready yet")
    pinned = {
        annotations.RESTORE_SOURCE: name,
        annotations.RESTORE_SOURCE_KIND: POD_SNAPSHOTS.kind,
        annotations.RESTORE_SNAPSHOT_UID: objects.uid(snapshot),
        annotations.RESTORE_SNAPSHOT_CONTENT: snapshots.content_of(snapshot),
        annotations.RESTORE_SNAPSHOT_GMS_MODE: snapshots.NO_MEMORY_SERVICE,
        annotations.RESTORE_SNAPSHOT_VERSION: snapshots.VERSION,
    }
    words = f"pods start from PodSnapshot {name}"
    return SnapshotStart(name, READY, words, candidate={**_candidate(desired, digest), **pinned})


def of_capture(
    desired: ComponentCheckpoint, capture: KubeObject, job: KubeObject | None, snapshot: KubeObject | None
) -> SnapshotStart:
    """The PodSnapshot that is taken of a component, from its desired and its observed SnapshotJob."""
    named, digest, graph_uid = f"SnapshotJob {objects.name(capture)}", hash_of(capture), snapshots.owner_uid(capture)
    if job is None:
        return SnapshotStart("", PENDING, f"{named} does not exist yet", is_automatic=True)
    if snapshots.owner_uid(job) != graph_uid:
        taken = f"{named} exists, and was not created for this graph: delete it"
        return SnapshotStart("", UNUSABLE, taken, fails=True, is_automatic=True)
    if hash_of(job) != digest:
        old = f"{named} has no metadata for its PodSnapshot: install a later Snapshot operator, then delete the SnapshotJob"
        return SnapshotStart("", UNUSABLE, old, fails=True, is_automatic=True)
    name = snapshots.snapshot_name(job)
    pinned = {
        annotations.RESTORE_SOURCE: objects.name(job),
        annotations.RESTORE_SOURCE_KIND: SNAPSHOT_JOBS.kind,
        annotations.RESTORE_JOB_UID: objects.uid(job),
    }
    candidate = {**_candidate(desired, digest), **pinned}

    def start(reason: str, message: str, *, fails: bool = False) -> SnapshotStart:
        return SnapshotStart(name, reason, message, fails, True, candidate)

    # The annotations stay in every case: without them all pods would be replaced.
    if (failure := snapshots.failure_of(job)) is not None:
        why = ": ".join(filter(None, failure))
        return start(FAILED, f"{named} failed: {why}; delete it to capture the engine again", fails=True)
    if not snapshots.is_completed(job):
        return start(PENDING, f"{named} captures the engine{_progress(job)}")
    if snapshot is None or not snapshots.is_taken_by(job, snapshot):
        return start(
            UNUSABLE, f"{named} completed, but its PodSnapshot no longer exists: delete the SnapshotJob", fails=True
        )
    if problem := snapshots.problem_of(snapshot, digest, graph_uid):
        return start(UNUSABLE, f"PodSnapshot {name} {problem}", fails=True)
    if not snapshots.is_ready(snapshot):
        return start(PENDING, f"PodSnapshot {name} is not ready yet")
    return start(READY, f"new pods start from PodSnapshot {name}")


def _progress(job: KubeObject) -> str:
    """The condition of a SnapshotJob that shows its progress, the latest step first."""
    for type_ in ("Captured", "Running"):
        entry = snapshots.condition(job, type_)
        if cause := ": ".join(filter(None, (text(entry.get("reason")), text(entry.get("message"))))):
            return f" ({cause})"
    return ""


def _candidate(desired: ComponentCheckpoint, digest: str) -> dict[str, str]:
    return {
        annotations.RESTORE_CANDIDATE: "true",
        annotations.RESTORE_COMPATIBILITY_HASH: digest,
        annotations.RESTORE_TARGETS: desired.target_container_name or MAIN,
        annotations.RESTORE_STARTUP_POLICY: snapshots.WAIT if desired.waits else snapshots.IMMEDIATE,
    }
