"""Cancels builds that no request needs any more: otherwise they would use the places of their namespace to the end."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import structlog
from dynamo_shared.api import objects
from dynamo_shared.api.resources import DYNAMO_NIM_REQUESTS, JOBS, ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import Conflict, NotFound
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.routes import CacheChange, TaskRoute
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state import ObjectCache

from dynamo_image_builder import queue
from dynamo_image_builder.status import BY_JOB, job_of

#: How long a build continues without a request: a deleted request may be created again, and the status of a new one may
#: not be written yet. Seconds.
CANCEL_AFTER = 30.0

log = structlog.get_logger("dynamo.image-builder")


def routes() -> tuple[TaskRoute, ...]:
    """A build may have lost its last request, or may never have had one."""

    def former(change: CacheChange) -> Iterator[Task]:
        before = job_of(change.old) if change.old is not None else None
        if before is not None and (change.new is None or job_of(change.new) != before):
            yield Task.of(JOBS, before)

    return TaskRoute(DYNAMO_NIM_REQUESTS, to=former), TaskRoute(JOBS, when=lambda change: change.old is None)


@dataclass(slots=True)
class BuildReconciler:
    """Deletes the running Job of a build without requests. `serves`: whether the platform reads a namespace's requests."""

    kube: KubeClient
    cache: ObjectCache
    serves: Callable[[str], bool]
    clock: Callable[[], float]
    #: By uid of a Job: since when it has no requests.
    _alone: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        self._alone = self.cache.memory()

    async def reconcile(self, key: ObjectKey) -> Result:
        """Reconcile one Job."""
        job = self.cache.get(JOBS, key)
        namespace = queue.namespace_of(job) if job is not None else ""
        if job is None or objects.is_deleting(job) or queue.has_ended(job) or not namespace:
            return Result()
        uid = objects.uid(job)
        if self.cache.keys_by_index(DYNAMO_NIM_REQUESTS, BY_JOB, str(key)) or not self.serves(namespace):
            self._alone.pop(uid, None)
            return Result()
        left = self._alone.setdefault(uid, self.clock()) + CANCEL_AFTER - self.clock()
        if left > 0:
            return Result(left)
        log.info("a build is cancelled: all its requests were deleted", job=str(key), namespace=namespace)
        with suppress(NotFound, Conflict):
            await self.kube.delete(JOBS, key, uid=uid)
        return Result()
