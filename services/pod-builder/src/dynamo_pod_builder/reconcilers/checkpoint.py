"""DynamoCheckpoint -> a Job that loads the engine, and the status of the checkpoint that the snapshot agent takes.

One of the following cases holds:
1. Its Job has ended: nothing is done until another version of its files is requested.
2. Its Job is under way: the Job, and an annotation that the agent sets on the Job, report the progress.
3. It has no Job: the Job is created, unless something prevents it. That is reported, and tried again.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from dynamo_shared.aio import Offload
from dynamo_shared.api import objects
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.labels import CHECKPOINT_ID, JOB_NAME
from dynamo_shared.api.resources import (
    DAEMON_SETS,
    DYNAMO_CHECKPOINTS,
    JOBS,
    LEASES,
    PERSISTENT_VOLUME_CLAIMS,
    ObjectKey,
    key_of,
)
from dynamo_shared.api.v1alpha1 import DynamoCheckpoint, DynamoCheckpointSpec, parse_checkpoint
from dynamo_shared.kube import KubeClient, create_or_get, first_pods, get_if_present
from dynamo_shared.kube.errors import AlreadyExists
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.runtime.large_objects import in_turn
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder import events, render
from dynamo_pod_builder.applier import Applier
from dynamo_pod_builder.checkpoints import of_identity
from dynamo_pod_builder.child_steps import is_managed
from dynamo_pod_builder.errors import NameTaken
from dynamo_pod_builder.pod_events import PodEvents
from dynamo_pod_builder.pods import pods_of
from dynamo_pod_builder.reconcilers.refusals import REFUSALS, failure_of, retry_after
from dynamo_pod_builder.reconcilers.requeue import LACKING_INTERVAL
from dynamo_pod_builder.render.checkpoint import job, names
from dynamo_pod_builder.render.checkpoint.allowed import refusal
from dynamo_pod_builder.render.checkpoint.identity import identity_hash
from dynamo_pod_builder.render.checkpoint.job import PlannedCheckpoint
from dynamo_pod_builder.render.checkpoint.storage import claim_of, storage_of
from dynamo_pod_builder.status import checkpoint as checkpoint_status
from dynamo_pod_builder.status.checkpoint import FAILED, GONE, PENDING, JobProgress, Obstacle
from dynamo_pod_builder.status.component import Failure
from dynamo_pod_builder.status.pods import recheck_after, troubles

#: How soon the Job is checked again if its agent has not reported how the work ended. Seconds.
CONFIRM = 1.0
_NO_STORAGE = Obstacle(
    PENDING,
    "NoStorage",
    "no storage for checkpoints is configured: install the snapshot agent in this namespace, or set checkpoint.storage in "
    "the operator configuration",
)


@dataclass(frozen=True, slots=True)
class CheckpointReconciler:
    """Has one checkpoint taken, and reports the progress in its status."""

    kube: KubeClient
    cache: ObjectCache
    applier: Applier
    statuses: StatusWriter
    announcer: Announcer
    config: Callable[[], render.RenderConfig]
    now: Callable[[], datetime]
    large: Offload
    pod_events: PodEvents

    async def reconcile(self, key: ObjectKey) -> Result:
        """Reconcile one checkpoint. Raises KubeError if the API server is unavailable: the queue retries the key."""
        obj = self.cache.get(DYNAMO_CHECKPOINTS, key)
        if obj is None or objects.is_deleting(obj):
            return Result()
        try:
            checkpoint = await in_turn(self.large, obj, partial(parse_checkpoint, obj))
        except InvalidManifest as error:
            return await self._refuse(obj, "", _obstacle_of(failure_of(error)))
        spec = checkpoint.spec
        if spec is None:
            return await self._refuse(obj, "", Obstacle(FAILED, "InvalidSpec", "spec: is required"))
        digest = identity_hash(spec.identity)
        try:
            obj = await self._labelled(obj, digest)
        except REFUSALS as error:
            if obj.get("status", {}).get("jobName"):
                # The status is about this Job.
                raise
            return await self._fail(obj, digest, error)
        if checkpoint_status.is_settled(obj, names.job(digest, names.version_of(obj))):
            return Result()
        status = obj.get("status", {})
        # Another writer may have set the phase without a Job.
        if status.get("phase") == checkpoint_status.CREATING and status.get("jobName"):
            return await self._follow(obj)
        return await self._begin(obj, checkpoint, spec, digest)

    async def _labelled(self, obj: KubeObject, digest: str) -> KubeObject:
        if objects.labels(obj).get(CHECKPOINT_ID) == digest:
            return obj
        version = obj["metadata"]["resourceVersion"]
        patch = {"metadata": {"labels": {CHECKPOINT_ID: digest}, "resourceVersion": version}}
        written = await self.kube.merge_patch(DYNAMO_CHECKPOINTS, key_of(obj), patch)
        self.cache.put(DYNAMO_CHECKPOINTS, written)
        return written

    async def _begin(
        self, obj: KubeObject, checkpoint: DynamoCheckpoint, spec: DynamoCheckpointSpec, digest: str
    ) -> Result:
        defaults, namespace = self.config().checkpoints, obj["metadata"]["namespace"]
        storage = storage_of(defaults, self.cache.list(DAEMON_SETS, namespace))
        obstacle = self._obstacle(obj, spec, digest)
        if obstacle is not None or storage is None:
            return await self._refuse(obj, digest, obstacle or _NO_STORAGE)
        planned = PlannedCheckpoint(digest, names.version_of(obj), storage)
        try:
            rendered = partial(job.children, checkpoint, spec, planned, self.config())
            await self._make(await in_turn(self.large, obj, rendered), claim_of(defaults, namespace))
        except REFUSALS as error:
            return await self._fail(obj, digest, error)
        return await self._report(obj, checkpoint_status.creating(obj, planned, self.now()))

    def _obstacle(self, obj: KubeObject, spec: DynamoCheckpointSpec, digest: str) -> Obstacle | None:
        if (refused := refusal(spec, self.config().checkpoints)) is not None:
            return Obstacle(FAILED, *refused)
        holder = of_identity(self.cache, objects.namespace(obj), digest)
        if holder is None or holder.uid == objects.uid(obj):
            return None
        message = f"identity {digest} is already owned by DynamoCheckpoint {holder.name}: use that checkpoint"
        return Obstacle(FAILED, "AlreadyOwned", message)

    async def _make(self, children: list[KubeObject], claim: KubeObject | None) -> None:
        if claim is not None:
            with contextlib.suppress(AlreadyExists):
                await self.kube.create(PERSISTENT_VOLUME_CLAIMS, claim)
        *others, checkpoint_job = children
        for child in others:
            await self.applier.ensure(child)
        # A Job cannot be changed: an existing Job of this checkpoint is as desired.
        observed = self.cache.get(JOBS, key_of(checkpoint_job))
        if observed is None:
            observed = await create_or_get(self.kube, JOBS, checkpoint_job)
        if not is_managed(checkpoint_job, observed):
            raise NameTaken(JOBS, observed)
        self.cache.put(JOBS, observed)

    async def _follow(self, obj: KubeObject) -> Result:
        now, key = self.now(), ObjectKey(obj["metadata"]["namespace"], obj["status"]["jobName"])
        checkpoint_job = await self._job(obj, key)
        pods = await pods_of(self.cache, checkpoint_job)
        observation = GONE if checkpoint_job is None else checkpoint_status.observe(checkpoint_job, troubles(pods, now))
        if observation.progress is JobProgress.UNDER_WAY:
            again = recheck_after(pods, now)
            if checkpoint_job is not None and not pods:
                refused = await self.pod_events.refused(checkpoint_job, JOBS.kind, key.name)
                observation, again = checkpoint_status.observe(checkpoint_job, refused), LACKING_INTERVAL
            return await self._report(obj, checkpoint_status.followed(obj, observation, now), again)
        if observation.progress is JobProgress.UNCONFIRMED:
            # The agent's hold on a checkpoint is a Lease with the name of the Job.
            lease = await get_if_present(self.kube, LEASES, key)
            if checkpoint_status.is_held(lease, now):
                return Result(requeue_after=CONFIRM)
            # The agent annotates the Job before it releases its Lease; the annotation may not be in the cache yet.
            if (stored := await self._stored(obj, key)) is not None:
                observation = checkpoint_status.observe(stored)
        if (
            checkpoint_job is not None
            and observation.progress is JobProgress.FAILED
            and (words := await self._termination_message(key))
        ):
            observation = replace(observation, message=f"{observation.message}; {words}")
        return await self._report(obj, checkpoint_status.followed(obj, observation, now))

    async def _termination_message(self, key: ObjectKey) -> str:
        """How the pod ended, read from the API server, because the event of the pod may arrive after that of the Job."""
        pods = await first_pods(self.kube, key.namespace, f"{JOB_NAME}={key.name}")
        return checkpoint_status.termination_message(pods)

    async def _job(self, obj: KubeObject, key: ObjectKey) -> KubeObject | None:
        """The checkpoint's Job. The cache may get it after the status that names it, or still have an earlier Job."""
        return _of(obj, self.cache.get(JOBS, key)) or await self._stored(obj, key)

    async def _stored(self, obj: KubeObject, key: ObjectKey) -> KubeObject | None:
        """The checkpoint's Job, read from the API server."""
        return _of(obj, await get_if_present(self.kube, JOBS, key))

    async def _fail(self, obj: KubeObject, digest: str, error: Exception) -> Result:
        failure = failure_of(error)
        return await self._refuse(obj, digest, _obstacle_of(failure), retry_after(failure))

    async def _refuse(self, obj: KubeObject, digest: str, obstacle: Obstacle, again: float | None = None) -> Result:
        return await self._report(obj, checkpoint_status.refused(obj, digest, obstacle, self.now()), again)

    async def _report(self, obj: KubeObject, status: KubeObject, again: float | None = None) -> Result:
        before = obj.get("status", {})
        reason = checkpoint_status.reason_of(status)
        entered = (status["phase"], status.get("jobName")) != (before.get("phase"), before.get("jobName"))

        def report() -> None:
            if entered or reason != checkpoint_status.reason_of(before):
                self.announcer.announce(obj, events.checkpoint_changed(obj, status, reason, entered=entered))

        wait = await self.statuses.write(DYNAMO_CHECKPOINTS, obj, status, urgent=True, report=report)
        return Result(requeue_after=again if wait is None else wait)


def _of(obj: KubeObject, checkpoint_job: KubeObject | None) -> KubeObject | None:
    """The Job, if this checkpoint controls it."""
    return checkpoint_job if checkpoint_job is not None and objects.controls(obj, checkpoint_job) else None


def _obstacle_of(failure: Failure) -> Obstacle:
    """A name that is taken may become free without a change; every other failure needs a change."""
    is_passing = failure.passes or failure.reason == "NameTaken"
    return Obstacle(PENDING if is_passing else FAILED, failure.reason, failure.message)
