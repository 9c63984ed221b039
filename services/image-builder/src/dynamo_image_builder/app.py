"""Composition root: all parts of the image-builder service on one page."""

from functools import partial

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_NIM_REQUESTS, JOBS, Resource
from dynamo_shared.runtime import Controller, ServiceContext
from dynamo_shared.runtime.controller import now
from dynamo_shared.runtime.routes import Reconciler, TaskRoute, indexed
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.runtime.unexpected import UnexpectedFailures

from dynamo_image_builder import cancellation, queue, reconciler
from dynamo_image_builder.archives import ArchiveFinder, Archives
from dynamo_image_builder.cancellation import BuildReconciler
from dynamo_image_builder.events import reconcile_failed
from dynamo_image_builder.metrics import BuildMetrics
from dynamo_image_builder.reconciler import NimRequestReconciler
from dynamo_image_builder.status import BY_JOB

NAME = "image-builder"
READS: tuple[Resource, ...] = (DYNAMO_NIM_REQUESTS, JOBS)


class ImageBuilderService:
    """Builds the images of DynamoNimRequests."""

    name = NAME

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        with BuildMetrics(context.metrics.registry) as metrics:
            await _controller(context, metrics).serve()


def _controller(context: ServiceContext, metrics: BuildMetrics) -> Controller:
    controller = Controller(context, NAME, READS)
    cache, settings = controller.cache, context.settings.platform.image_builder
    cache.pack(JOBS)
    cache.keep_only(DYNAMO_NIM_REQUESTS, objects.with_essential_metadata)
    reconciler.index(cache)
    statuses = StatusWriter(controller.kube, cache, context.clock)
    unexpected = UnexpectedFailures(
        NAME, cache, statuses, controller.announcer, now, {DYNAMO_NIM_REQUESTS: reconcile_failed}
    )
    archives = Archives(
        ArchiveFinder(settings),
        context.queue(f"{NAME}-archives", lambda read: read.namespace),
        cache,
        lambda key: controller.enqueue(Task.of(DYNAMO_NIM_REQUESTS, key)),
    )
    requests = NimRequestReconciler(
        kube=controller.kube,
        cache=cache,
        archives=archives,
        statuses=statuses,
        announcer=controller.announcer,
        metrics=metrics,
        settings=settings,
        now=now,
    )

    def serves(namespace: str) -> bool:
        served = context.settings.served
        return namespace in served if served else not controller.is_held(namespace)

    builds = BuildReconciler(controller.kube, cache, serves, context.clock)
    context.metrics.of_namespaces(DYNAMO_NIM_REQUESTS.plural, metrics.answers)
    controller.wire(
        {
            DYNAMO_NIM_REQUESTS.plural: Reconciler(
                unexpected.reported(DYNAMO_NIM_REQUESTS, requests.reconcile), partial(cache.keys, DYNAMO_NIM_REQUESTS)
            ),
            JOBS.plural: Reconciler(builds.reconcile, partial(queue.all_running, cache)),
        },
        (
            TaskRoute(DYNAMO_NIM_REQUESTS),
            TaskRoute(JOBS, to=indexed(cache, BY_JOB, DYNAMO_NIM_REQUESTS)),
            *queue.routes(cache, settings),
            *cancellation.routes(),
        ),
        counted={DYNAMO_NIM_REQUESTS: _phase},
        background={"archives": archives.run},
    )
    return controller


def _phase(request: KubeObject) -> str:
    if objects.is_deleting(request):
        return "deleting"
    return str((request.get("status") or {}).get("phase") or "Pending").lower()
