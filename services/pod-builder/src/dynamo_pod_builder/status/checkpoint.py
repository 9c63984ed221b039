"""Status of a DynamoCheckpoint, from the Job that takes it (reference behaviour, section 8)."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dynamo_shared.api import objects
from dynamo_shared.api.conditions import condition_of, timestamp
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import SNAPSHOT_STATUS
from dynamo_shared.api.untrusted import times
from dynamo_shared.api.untrusted.words import last_of

from dynamo_pod_builder.render.checkpoint.job import PlannedCheckpoint
from dynamo_pod_builder.render.checkpoint.target import PVC
from dynamo_pod_builder.status.pods import Rank, Trouble, summary

PENDING, CREATING, READY, FAILED = "Pending", "Creating", "Ready", "Failed"
JOB_CREATED, JOB_COMPLETED = "JobCreated", "JobCompleted"

#: Reasons.
MADE, SUCCEEDED, JOB_FAILED, JOB_DELETED = "JobCreated", "JobSucceeded", "JobFailed", "JobDeleted"
UNVERIFIED, RUNNING = "CheckpointVerificationFailed", "JobRunning"

#: The longest quotation of a container's own message. Characters.
_QUOTED = 400

#: Values of the snapshot agent's annotation.
_COMPLETED, _FAILED = "completed", "failed"


class JobProgress(enum.Enum):
    """The progress of a checkpoint's Job."""

    UNDER_WAY = "under way"
    #: The engine has ended; only the agent knows whether its checkpoint is complete, and has not reported it yet.
    UNCONFIRMED = "unconfirmed"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class JobObservation:
    """The progress of a checkpoint, according to its Job."""

    progress: JobProgress
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why there is no Job: `PENDING` if that may pass, `FAILED` if a user has to change something."""

    phase: str
    reason: str
    message: str


GONE = JobObservation(JobProgress.FAILED, JOB_DELETED, "the checkpoint's Job was deleted before it ended")


def observe(job: KubeObject, troubles: Sequence[Trouble] = ()) -> JobObservation:
    """The progress, from a Job, the troubles of its pod, and the snapshot agent's annotation on the Job."""
    word = objects.annotations(job).get(SNAPSHOT_STATUS, "")
    complete, failed = objects.is_true(job, "Complete"), objects.condition(job, "Failed")
    if word == _FAILED:
        message = "the snapshot agent could not take the checkpoint; its log on the pod's node says why"
        return JobObservation(JobProgress.FAILED, UNVERIFIED if complete else JOB_FAILED, message)
    if complete and word == _COMPLETED:
        return JobObservation(JobProgress.DONE, SUCCEEDED, "pods can start from the checkpoint")
    if complete:
        message = "the Job ended, but the snapshot agent has not reported that the checkpoint is complete"
        return JobObservation(JobProgress.UNCONFIRMED, UNVERIFIED, message)
    if failed is not None and failed["status"] == "True":
        message = ": ".join(filter(None, (failed.get("reason"), failed.get("message"))))
        return JobObservation(JobProgress.FAILED, JOB_FAILED, message or "the checkpoint's Job failed")
    # The engine becomes ready only when the agent may begin; how long its model takes to load is unknown.
    serious = [each for each in troubles if each.rank is not Rank.PROBE]
    if serious:
        return JobObservation(JobProgress.UNDER_WAY, serious[0].reason, summary(serious))
    return JobObservation(JobProgress.UNDER_WAY, RUNNING, f"Job {job['metadata']['name']} loads the engine")


def termination_message(pods: Sequence[KubeObject]) -> str:
    """How the containers of a failed Job's pod ended; "" if none reports it."""
    words = []
    for pod in pods:
        for container in pod.get("status", {}).get("containerStatuses", ()):
            end = (container.get("state") or {}).get("terminated") or {}
            if end.get("exitCode"):
                message = last_of(end.get("message") or "", _QUOTED)
                reason = "" if end.get("reason") in (None, "Error") else f" ({end['reason']})"
                words.append(
                    f"container {container['name']} exited with code {end['exitCode']}{reason}"
                    + (f": {message}" if message else "")
                )
    return "; ".join(words)


def is_held(lease: KubeObject | None, now: datetime) -> bool:
    """Whether a Lease is current: its holder works on the checkpoint. False without a Lease, or if it lacks fields."""
    spec = (lease or {}).get("spec") or {}
    if not spec.get("holderIdentity"):
        return False
    return times.is_current(spec.get("renewTime"), spec.get("leaseDurationSeconds"), now)


def is_settled(checkpoint: KubeObject, job: str) -> bool:
    """Whether this Job has ended, so nothing is left to do. A checkpoint without a Job is never settled."""
    status = checkpoint.get("status", {})
    return (
        status.get("phase") in (READY, FAILED)
        and status.get("jobName") == job
        and objects.is_true(checkpoint, JOB_CREATED)
    )


def refused(checkpoint: KubeObject, identity_hash: str, obstacle: Obstacle, now: datetime) -> KubeObject:
    """Status of a checkpoint that has no Job; the hash is "" if the identity cannot be read."""
    created = condition_of(checkpoint, JOB_CREATED, False, obstacle.reason, obstacle.message, now=now)
    status: KubeObject = {"phase": obstacle.phase, "message": created["message"], "conditions": [created]}
    return {**status, "identityHash": identity_hash} if identity_hash else status


def creating(checkpoint: KubeObject, planned: PlannedCheckpoint, now: datetime) -> KubeObject:
    """Status of a checkpoint whose Job has just been created."""
    message = f"Job {planned.job} loads the engine"
    return {
        "phase": CREATING,
        "identityHash": planned.identity_hash,
        "jobName": planned.job,
        "location": planned.location,
        "storageType": PVC,
        "message": message,
        "conditions": [
            condition_of(checkpoint, JOB_CREATED, True, MADE, f"Job {planned.job} was created", now=now),
            condition_of(checkpoint, JOB_COMPLETED, False, RUNNING, message, now=now),
        ],
    }


def followed(checkpoint: KubeObject, observation: JobObservation, now: datetime) -> KubeObject:
    """Status of a checkpoint with a Job: what delays it, or its end. If no agent confirms the end, it has failed."""
    status, done = checkpoint["status"], observation.progress is JobProgress.DONE
    if done:
        status = {**status, "phase": READY, "createdAt": timestamp(now)}
    elif observation.progress is not JobProgress.UNDER_WAY:
        status = {**status, "phase": FAILED}
    conditions = [each for each in status.get("conditions", ()) if each["type"] != JOB_COMPLETED]
    entry = condition_of(checkpoint, JOB_COMPLETED, done, observation.reason, observation.message, now=now)
    return {**status, "message": entry["message"], "conditions": [*conditions, entry]}


def reason_of(status: KubeObject) -> str:
    """Why a checkpoint is in its phase: the reason of its last step."""
    conditions = status.get("conditions", ())
    last = conditions[-1] if conditions else None
    return "" if last is None else str(last["reason"])
