"""Composition root: all that the model-discovery service is made of, on one page."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from dynamo_shared.api.conditions import find
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_MODELS, ENDPOINT_SLICES, PODS, ObjectKey, Resource, key_of
from dynamo_shared.runtime import Result, ServiceContext
from dynamo_shared.runtime.controller import Controller, Counts, Part, now
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.runtime.tasks import Task

from dynamo_model_discovery import routing
from dynamo_model_discovery.lora.api import HttpWorkerApi
from dynamo_model_discovery.lora.keeper import AdapterKeeper, lane
from dynamo_model_discovery.metrics import LoraMetrics
from dynamo_model_discovery.models.status import ENDPOINTS_READY
from dynamo_model_discovery.reconcilers.model import ModelReconciler
from dynamo_model_discovery.workers.discovery import WorkerDiscoveryService

NAME = "model-discovery"
READS: tuple[Resource, ...] = (DYNAMO_MODELS, ENDPOINT_SLICES, PODS)
#: While many workers load an adapter: seconds between reconciles that report progress.
PROGRESS = 0.2
#: How often adapters are counted for the metric. Seconds.
COUNT_INTERVAL = 5.0


class ModelDiscoveryService:
    """Finds the endpoints of models, loads LoRA adapters, and publishes which worker serves which model."""

    name = NAME

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        settings = context.settings.platform.model_discovery
        metrics = LoraMetrics(context.metrics.registry)
        api = HttpWorkerApi(
            timeout=settings.request_timeout,
            concurrency=settings.concurrency,
            proxy=settings.proxy,
            observe=metrics.requested,
        )
        try:
            async with api, asyncio.TaskGroup() as tasks:
                keep = context.supervisor(NAME).keep
                tasks.create_task(
                    keep("models", lambda: _ModelController(context, api, metrics).serve(), essential=True)
                )
                if settings.workers.enabled:
                    tasks.create_task(keep("workers", lambda: WorkerDiscoveryService(context).serve()))
        finally:
            metrics.close()


class _ModelController(Controller):
    """DynamoModels."""

    def __init__(self, context: ServiceContext, api: HttpWorkerApi, metrics: LoraMetrics) -> None:
        super().__init__(context, NAME, READS)
        self.cache.pack(ENDPOINT_SLICES, PODS)
        routing.index(self.cache)
        settings = context.settings.platform.model_discovery
        self._metrics = metrics
        self._keeper = AdapterKeeper(
            api,
            settings,
            (context.queue(f"{NAME}-workers", lane), context.queue(f"{NAME}-failing-workers", lane)),
            self.announcer,
            model=lambda key: self.cache.get(DYNAMO_MODELS, key),
            may=lambda key: self.ownership.owns(key) and not self.is_held(key.namespace),
            changed=lambda key: self.enqueue(Task.of(DYNAMO_MODELS, key), PROGRESS),
            clock=context.clock,
        )
        statuses = StatusWriter(self.kube, self.cache, context.clock)
        self._models = ModelReconciler(
            self.kube, self.cache, statuses, self._keeper, self.announcer, settings, context.clock, now
        )
        self.ownership.on_loss(self._keeper.disown)
        self.ownership.before_release(self._keeper.release)

    def tasks_for(
        self, resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None
    ) -> Iterable[Task]:
        """Models whose workers, or whose rivals, changed."""
        return routing.tasks_for(self.cache, resource, key, old, new)

    def all_tasks(self) -> Iterable[Task]:
        """Every model."""
        return [Task.of(DYNAMO_MODELS, key_of(model)) for model in self.cache.list(DYNAMO_MODELS)]

    async def reconcile(self, task: Task) -> Result:
        """Reconcile one model."""
        return await self._models.reconcile(task.key)

    def changed(self, resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None) -> None:
        """What is gone owes nothing any more."""
        if old is None or (new is not None and new["metadata"]["uid"] == old["metadata"]["uid"]):
            return
        if resource == DYNAMO_MODELS:
            # Every replica reports it: the owner may be stopped, and no later event reports the model. The stream keeps one
            # message of an id. What its workers still owe is the owner's alone.
            self._models.gone(old, owned=self.ownership.owns(key))
        elif resource == PODS:
            self._keeper.pod_gone(old["metadata"]["uid"])

    def background(self) -> Mapping[str, Part]:
        """Workers are asked next to the reconciling."""
        return {"adapters": self._keeper.run, "adapter-count": self._count_adapters}

    def counts(self) -> Counts:
        """Models by whether they are served."""
        return {DYNAMO_MODELS.plural: self.count_by(DYNAMO_MODELS, _readiness)}

    async def _count_adapters(self) -> None:
        while True:
            self._metrics.counted(self._keeper.states())
            await asyncio.sleep(COUNT_INTERVAL)


def _readiness(model: KubeObject) -> str:
    endpoints = find(model.get("status", {}).get("conditions") or (), ENDPOINTS_READY)
    return "ready" if endpoints is not None and endpoints["status"] == "True" else "not_ready"
