"""Composition root: all parts of the model-discovery service on one page."""

import asyncio
from functools import partial

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_MODELS, ENDPOINT_SLICES, PODS, Resource
from dynamo_shared.runtime import Controller, ServiceContext
from dynamo_shared.runtime.controller import now
from dynamo_shared.runtime.routes import CacheChange, Reconciler
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.runtime.tasks import Task

from dynamo_model_discovery import routing
from dynamo_model_discovery.lora.api import WorkerApi
from dynamo_model_discovery.lora.keeper import AdapterKeeper, lane
from dynamo_model_discovery.metrics import LoraMetrics
from dynamo_model_discovery.models.status import ENDPOINTS_READY
from dynamo_model_discovery.reconcilers.model import ModelReconciler
from dynamo_model_discovery.workers.discovery import WorkerDiscoveryService

NAME = "model-discovery"
#: Resources of workers: a cluster has far more of them than models, so each replica reads only those of its share.
OF_SHARE: tuple[Resource, ...] = (ENDPOINT_SLICES, PODS)
READS: tuple[Resource, ...] = (DYNAMO_MODELS, *OF_SHARE)
#: Seconds between reconciles that report progress while many workers load an adapter.
PROGRESS = 0.2
#: How often adapters are counted for the metric. Seconds.
COUNT_INTERVAL = 5.0


class ModelDiscoveryService:
    """Discovers the endpoints of models, loads LoRA adapters, and publishes which worker serves which model."""

    name = NAME

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        settings = context.settings.platform.model_discovery
        with LoraMetrics(context.metrics.registry) as metrics:
            api = WorkerApi(
                timeout=settings.request_timeout,
                concurrency=settings.concurrency,
                proxy=settings.proxy,
                observe=metrics.requested,
            )
            async with api, asyncio.TaskGroup() as tasks:
                keep = context.supervisor(NAME).keep
                tasks.create_task(keep("models", lambda: _controller(context, api, metrics).serve(), essential=True))
                if settings.workers.enabled:
                    tasks.create_task(keep("workers", lambda: WorkerDiscoveryService(context).serve()))


def _controller(context: ServiceContext, api: WorkerApi, metrics: LoraMetrics) -> Controller:
    """DynamoModels."""
    controller = Controller(context, NAME, READS, of_share=OF_SHARE)
    kube, cache, ownership = controller.kube, controller.cache, controller.ownership
    cache.pack(*OF_SHARE)
    routing.index(cache)
    settings = context.settings.platform.model_discovery
    keeper = AdapterKeeper(
        api,
        settings,
        context.queue(f"{NAME}-workers", lane),
        context.queue(f"{NAME}-failing-workers", lane),
        controller.announcer,
        model=partial(cache.get_by_uid, DYNAMO_MODELS),
        may=lambda key: ownership.owns(key) and not controller.is_held(key.namespace),
        changed=lambda key: controller.enqueue(Task.of(DYNAMO_MODELS, key), PROGRESS),
        clock=context.clock,
    )
    statuses = StatusWriter(kube, cache, context.clock)
    models = ModelReconciler(kube, cache, statuses, keeper, controller.announcer, settings, context.clock, now)
    ownership.on_loss(keeper.disown)
    ownership.before_release(keeper.release)

    def model_changed(change: CacheChange) -> None:
        # Every replica reports the deletion, because the owner may have stopped; the stream drops duplicates by id. Only
        # the owner unloads the adapters.
        if change.gone is not None:
            models.gone(change.gone, owned=ownership.owns(change.key))

    routing.on_departure(cache, keeper.pod_gone)

    async def count_adapters() -> None:
        while True:
            metrics.counted(keeper.states())
            await asyncio.sleep(COUNT_INTERVAL)

    controller.wire(
        {DYNAMO_MODELS.plural: Reconciler(models.reconcile, partial(cache.keys, DYNAMO_MODELS))},
        routing.routes(cache),
        effects={DYNAMO_MODELS: model_changed},
        counted={DYNAMO_MODELS: _readiness},
        # Requests to workers run in parallel to the reconciles.
        background={"adapters": keeper.run, "adapter-count": count_adapters},
    )
    return controller


def _readiness(model: KubeObject) -> str:
    return "ready" if objects.is_true(model, ENDPOINTS_READY) else "not_ready"
