"""Composition root: all parts of the image-builder service, on one page."""

from __future__ import annotations

from collections.abc import Iterable

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_NIM_REQUESTS, JOBS, ObjectKey, Resource, key_of
from dynamo_shared.runtime import Controller, Result, ServiceContext
from dynamo_shared.runtime.controller import Counts, now
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.runtime.tasks import Task

from dynamo_image_builder import reconciler
from dynamo_image_builder.archives import StoredArchives
from dynamo_image_builder.metrics import BuildMetrics
from dynamo_image_builder.reconciler import NimRequestReconciler

NAME = "image-builder"
READS: tuple[Resource, ...] = (DYNAMO_NIM_REQUESTS, JOBS)


class ImageBuilderService:
    """Builds the images that DynamoNimRequests ask for."""

    name = NAME

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        metrics = BuildMetrics(context.metrics.registry)
        try:
            await _ImageBuilder(context, metrics).serve()
        finally:
            metrics.close()


class _ImageBuilder(Controller):
    def __init__(self, context: ServiceContext, metrics: BuildMetrics) -> None:
        super().__init__(context, NAME, READS)
        reconciler.index(self.cache)
        settings = context.settings.platform.image_builder
        self._statuses = StatusWriter(self.kube, self.cache, context.clock)
        self._requests = NimRequestReconciler(
            kube=self.kube,
            cache=self.cache,
            archives=StoredArchives(settings),
            statuses=self._statuses,
            announcer=self.announcer,
            metrics=metrics,
            settings=settings,
            now=now,
        )

    def tasks_for(
        self, resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None
    ) -> Iterable[Task]:
        """The request itself, or those that follow a Job."""
        if resource == DYNAMO_NIM_REQUESTS:
            if new is None and old is not None:
                self._statuses.forget(resource, old)
            return (Task.of(DYNAMO_NIM_REQUESTS, key),)
        if resource == JOBS:
            followers = self.cache.by_index(DYNAMO_NIM_REQUESTS, reconciler.BY_JOB, f"{key.namespace}/{key.name}")
            return [Task.of(DYNAMO_NIM_REQUESTS, key_of(each)) for each in followers]
        return ()

    def all_tasks(self) -> Iterable[Task]:
        """Every request."""
        return [Task.of(DYNAMO_NIM_REQUESTS, key_of(each)) for each in self.cache.list(DYNAMO_NIM_REQUESTS)]

    async def reconcile(self, task: Task) -> Result:
        """Reconcile one request."""
        return await self._requests.reconcile(task.key)

    def counts(self) -> Counts:
        """Requests by phase."""
        return {DYNAMO_NIM_REQUESTS.plural: self.count_by(DYNAMO_NIM_REQUESTS, _phase)}


def _phase(request: KubeObject) -> str:
    return (
        str((request.get("status") or {}).get("phase") or "Pending").lower()
        if not objects.is_deleting(request)
        else "deleting"
    )
