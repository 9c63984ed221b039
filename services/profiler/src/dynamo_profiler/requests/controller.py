"""The controller of requests: what it reads, which changes concern which requests, and the running work."""

from collections.abc import Iterator

from dynamo_shared.aio import Offload
from dynamo_shared.api import objects
from dynamo_shared.api.engines.images import profiler_image
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    JOBS,
    NODES,
    RESOURCE_SLICES,
    ObjectKey,
)
from dynamo_shared.api.v1beta1.request import RequestPhase
from dynamo_shared.api.validation import Facts
from dynamo_shared.runtime import Controller, ServiceContext
from dynamo_shared.runtime.controller import now
from dynamo_shared.runtime.routes import CacheChange, Reconciler, TaskRoute
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.runtime.unexpected import UnexpectedFailures

from dynamo_profiler import events
from dynamo_profiler.profiling.results import ProfileRequest, ProfilingRequest
from dynamo_profiler.requests import deployment
from dynamo_profiler.requests.dcgm import DcgmExporters
from dynamo_profiler.requests.deployment import GraphDeployer
from dynamo_profiler.requests.hardware_discovery import HardwareFinder
from dynamo_profiler.requests.reconciler import RequestReconciler, reconcile_failed
from dynamo_profiler.requests.thorough import MeasuringBudget, Reader, RequireCandidates, ThoroughProfiling
from dynamo_profiler.requests.work import Profilings

#: In release 0.1.0 the planner owned requests. With its name, requests have one owner during an upgrade, and this
#: service may correct earlier writes.
IDENTITY = "planner"


class RequestController(Controller):
    """The controller of DynamoGraphDeploymentRequests."""

    def __init__(
        self,
        context: ServiceContext,
        name: str,
        profile: ProfileRequest,
        read: Reader,
        require_candidates: RequireCandidates,
        *,
        large: Offload,
    ) -> None:
        settings, planner = context.settings, context.settings.platform.planner
        nodes = (NODES, RESOURCE_SLICES) if settings.gpu.discovery_enabled else ()
        reads = (DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, DYNAMO_GRAPH_DEPLOYMENTS, JOBS, CONFIG_MAPS, *nodes)
        super().__init__(context, name, reads, identity=IDENTITY)
        deployment.index(self.cache)
        self.cache.pack(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, DYNAMO_GRAPH_DEPLOYMENTS, JOBS, CONFIG_MAPS)
        self._profilings = Profilings(
            profile,
            lambda key: self.enqueue(Task.of(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, key)),
            planner.rapid.processes,
        )
        exporters = DcgmExporters(self.kube, context.clock, planner.dcgm)
        thorough = ThoroughProfiling(
            self.kube,
            self.cache,
            read,
            self._image,
            MeasuringBudget(planner.thorough.time_limit, planner.thorough.gpu_hours),
            settings.rbac.dgdr_profiling_cluster_role_name,
            settings.infrastructure,
            require_candidates,
            now,
            large,
        )
        statuses = StatusWriter(self.kube, self.cache, context.clock)
        unexpected = UnexpectedFailures(
            name, self.cache, statuses, self.announcer, now, {DYNAMO_GRAPH_DEPLOYMENT_REQUESTS: reconcile_failed}
        )
        requests = RequestReconciler(
            self.kube,
            self.cache,
            statuses,
            self.announcer,
            self._profilings,
            thorough,
            GraphDeployer(self.kube, self.cache, self.announcer),
            HardwareFinder(self.cache, exporters, planner.gpu_cap, settings.gpu.discovery_enabled),
            self._facts,
            now,
            large,
        )
        self.wire(
            {
                DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.plural: Reconciler(
                    unexpected.reported(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, requests.reconcile),
                    lambda: self.cache.keys(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS),
                )
            },
            (
                TaskRoute(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS),
                *(TaskRoute(each, to=_requests_of) for each in (DYNAMO_GRAPH_DEPLOYMENTS, JOBS, CONFIG_MAPS)),
            ),
            effects={DYNAMO_GRAPH_DEPLOYMENT_REQUESTS: self._request_changed},
            counted={DYNAMO_GRAPH_DEPLOYMENT_REQUESTS: _phase},
            background={"profiling": self._profilings.run},
        )
        self.ownership.on_loss(lambda: self._profilings.stop_matching(lambda key: not self.ownership.owns(key)))
        self.ownership.before_release(self._profilings.release)

    def _image(self, request: ProfilingRequest) -> str:
        platform = self.context.settings.platform
        default = profiler_image(repository=platform.planner.image_repository, version=platform.version)
        return request.spec.image or default

    def _facts(self) -> Facts:
        settings = self.context.settings
        return Facts(cluster_wide=not settings.served, gpu_discovery=settings.gpu.discovery_enabled)

    def _request_changed(self, change: CacheChange) -> None:
        """End the work for a deleted request."""
        if (gone := change.gone) is not None:
            self._profilings.stop(gone["metadata"]["uid"])
            # Every replica reports the end: the owner may be stopped, and nothing reports it later. The stream keeps
            # one message of an id.
            self.announcer.announce(gone, events.request_gone(gone))


def _requests_of(change: CacheChange) -> Iterator[Task]:
    """The requests for which an object was created."""
    for obj in (change.old, change.new):
        if name := objects.labels(obj or {}).get(labels.REQUEST_NAME):
            yield Task.of(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ObjectKey(change.key.namespace, name))


def _phase(request: KubeObject) -> str:
    return str((request.get("status") or {}).get("phase", RequestPhase.PENDING.value))
