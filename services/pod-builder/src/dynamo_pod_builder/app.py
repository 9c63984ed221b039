"""Composition root: all parts of the pod-builder, on one page."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from dynamo_shared.aio import Offload
from dynamo_shared.api.conditions import PLANNING
from dynamo_shared.api.objects import KubeObject, is_true
from dynamo_shared.api.resources import (
    DAEMON_SETS,
    DYNAMO_CHECKPOINTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_NIM_REQUESTS,
    KAI_QUEUES,
    NAMESPACES,
    POD_SNAPSHOTS,
    PODS,
    RESOURCE_CLAIMS,
    SERVICE_ACCOUNTS,
    SNAPSHOT_JOBS,
    ObjectKey,
    Resource,
)
from dynamo_shared.runtime import Controller, ServiceContext
from dynamo_shared.runtime.controller import now
from dynamo_shared.runtime.debounce import Debounce
from dynamo_shared.runtime.routes import CacheChange, Reconciler, TaskRoute
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.runtime.unexpected import Reconcile, UnexpectedFailures

from dynamo_pod_builder import artifact_images, checkpoints, children, claims, cohorts, indexes, node_labels
from dynamo_pod_builder.applier import Applier
from dynamo_pod_builder.artifact_images import LEGACY
from dynamo_pod_builder.configuration import render_config
from dynamo_pod_builder.pod_events import PodEvents
from dynamo_pod_builder.reconcilers.checkpoint import CheckpointReconciler
from dynamo_pod_builder.reconcilers.component import ComponentReconciler
from dynamo_pod_builder.reconcilers.graph import GraphReconciler
from dynamo_pod_builder.reconcilers.graph.captures import Captures
from dynamo_pod_builder.reconcilers.graph.carry_out import Executor
from dynamo_pod_builder.reconcilers.graph.observe import GraphObserver
from dynamo_pod_builder.reconcilers.graph.report import GraphReport
from dynamo_pod_builder.reconcilers.legacy import LegacyReconciler
from dynamo_pod_builder.reconcilers.namespace import NamespaceReconciler
from dynamo_pod_builder.reconcilers.pod import PodReconciler
from dynamo_pod_builder.reconcilers.pod_snapshot import PodSnapshotReconciler
from dynamo_pod_builder.reconcilers.scaling import ScalingReconciler
from dynamo_pod_builder.reconcilers.unexpected import REPORTS
from dynamo_pod_builder.registrations import Registrations
from dynamo_pod_builder.render import RenderConfig
from dynamo_pod_builder.routing import routes
from dynamo_pod_builder.ssh_keys import SshKeys
from dynamo_pod_builder.status.checkpoint import PENDING
from dynamo_pod_builder.status.component import AVAILABLE
from dynamo_pod_builder.status.graph import INITIALIZING
from dynamo_pod_builder.surroundings import PullSecretLists, is_component_account
from dynamo_pod_builder.topology_schema import TopologySchema

NAME = "pod-builder"
#: Larger objects are rendered in a thread, and this many at a time: a component of a graph has about 1 KB, and takes
#: some milliseconds. Bytes.
LARGE_OBJECT, LARGE_AT_ONCE = 16 << 10, 2
#: Each worker waits for one small write most of the time.
SCALING_WORKERS = 64
#: Kinds of children, which far outnumber the graphs: each replica reads only those of its share.
OF_SHARE: tuple[Resource, ...] = (*children.OWNED, *children.OF_SETS, PODS, RESOURCE_CLAIMS)
READS: tuple[Resource, ...] = (
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_CHECKPOINTS,
    SNAPSHOT_JOBS,
    POD_SNAPSHOTS,
    *LEGACY,
    DYNAMO_NIM_REQUESTS,
    DAEMON_SETS,
    *OF_SHARE,
    KAI_QUEUES,
)


class PodBuilderService:
    """Graphs, component deployments, checkpoints and older kinds become Kubernetes objects; their status reports progress."""

    name = NAME

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        await _PodBuilder(context).serve()


class _PodBuilder(Controller):
    def __init__(self, context: ServiceContext) -> None:
        settings = context.settings
        # If KAI is disabled in the settings, the watcher publishes no queues.
        self._reads_queues = settings.orchestrators.kai_scheduler.enabled is not False
        reads = tuple(each for each in READS if each != KAI_QUEUES or self._reads_queues)
        super().__init__(context, NAME, reads, of_share=OF_SHARE)
        kube, cache = self.kube, self.cache
        cache.pack(DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_CHECKPOINTS, *LEGACY, *OF_SHARE)
        indexes.index(cache)
        applier = Applier(kube, cache, context.clock)
        statuses = StatusWriter(kube, cache, context.clock, frozenset({PLANNING}))
        self._config = self._render_config()
        keys = SshKeys(kube, self._config.ssh_secret, settings.mpi.ssh_secret_namespace)
        pull_secrets = PullSecretLists(
            kube, self.announcer, in_use=self._has_tasks, changed=self._enqueue_namespace, clock=context.clock
        )
        config, announcer, pod_events = (lambda: self._config), self.announcer, PodEvents(kube, context.clock)
        graph_report = GraphReport(statuses, announcer, pod_events)
        large = Offload(above=LARGE_OBJECT, at_once=LARGE_AT_ONCE)
        components = ComponentReconciler(
            cache, applier, statuses, announcer, config, now, pull_secrets, pod_events, large, keys
        )
        unexpected = UnexpectedFailures(NAME, cache, statuses, announcer, now, REPORTS)
        of_objects: dict[Resource, Reconcile] = {
            DYNAMO_GRAPH_DEPLOYMENTS: GraphReconciler(
                GraphObserver(
                    cache, config, now, pull_secrets, TopologySchema(kube, context.clock), Registrations(kube)
                ),
                Executor(applier, keys, announcer),
                graph_report,
                applier,
                large,
                Captures(kube, cache),
            ).reconcile,
            DYNAMO_COMPONENT_DEPLOYMENTS: components.reconcile,
            DYNAMO_CHECKPOINTS: CheckpointReconciler(
                kube, cache, applier, statuses, announcer, config, now, large, pod_events
            ).reconcile,
            **{
                each: LegacyReconciler(each, cache, applier, statuses, announcer, now, large).reconcile
                for each in LEGACY
            },
        }

        def reports_gone(report: Callable[[KubeObject], None]) -> Callable[[CacheChange], None]:
            # Every replica that reads the object reports it: the owner may be stopped, or its claim may be moving to
            # another replica. No later event reports the object, and the stream keeps one message per id.
            return lambda change: report(change.gone) if change.gone is not None else None

        self.wire(
            {
                **{
                    each.plural: Reconciler(unexpected.reported(each, reconcile), partial(cache.keys, each))
                    for each, reconcile in of_objects.items()
                },
                # Remaining differences are reconciled with the component, also without a change of an adapter.
                DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.plural: Reconciler(
                    ScalingReconciler(cache, applier).reconcile, tuple, urgent_workers=SCALING_WORKERS
                ),
                POD_SNAPSHOTS.plural: Reconciler(
                    PodSnapshotReconciler(cache, kube).reconcile, partial(cache.keys, POD_SNAPSHOTS)
                ),
                NAMESPACES.plural: Reconciler(NamespaceReconciler(cache, applier).reconcile, self._namespaces),
                PODS.plural: Reconciler(
                    PodReconciler(cache, kube, announcer).reconcile,
                    lambda: (*cohorts.ended(cache), *node_labels.waiting(cache)),
                ),
            },
            (
                *routes(cache, Debounce(context.clock), statuses.progress),
                *checkpoints.routes(cache),
                *claims.routes(cache),
                artifact_images.route(cache),
                TaskRoute(
                    SERVICE_ACCOUNTS,
                    to=lambda change: self._tasks_in(change.key.namespace),
                    when=lambda change: is_component_account(change.old) != is_component_account(change.new),
                ),
            ),
            effects={
                KAI_QUEUES: lambda _: self._configure(),
                DYNAMO_GRAPH_DEPLOYMENTS: reports_gone(graph_report.gone),
                DYNAMO_COMPONENT_DEPLOYMENTS: reports_gone(components.gone),
            },
            counted={
                DYNAMO_GRAPH_DEPLOYMENTS: lambda graph: graph.get("status", {}).get("state", INITIALIZING),
                DYNAMO_CHECKPOINTS: lambda checkpoint: checkpoint.get("status", {}).get("phase", PENDING),
                DYNAMO_COMPONENT_DEPLOYMENTS: lambda each: "ready" if is_true(each, AVAILABLE) else "not_ready",
            },
            background={"pull-secrets": pull_secrets.run},
            synced=self._configure,
        )

    def _configure(self) -> None:
        """The cluster's resources decide how graphs are rendered: if the configuration changes, all are reconciled."""
        before = self._config
        self._config = self._render_config()
        if self._config != before:
            self.enqueue_all()

    def _render_config(self) -> RenderConfig:
        listed = self.cache.list(KAI_QUEUES) if self._reads_queues else ()
        queues = [queue["metadata"]["name"] for queue in listed]
        return render_config(self.context.settings, self.reader.is_served, kai_queues=queues)

    def _tasks_in(self, namespace: str) -> Iterator[Task]:
        """Tasks for all objects of a namespace that create pods."""
        creators = (DYNAMO_COMPONENT_DEPLOYMENTS, *((DYNAMO_GRAPH_DEPLOYMENTS,) if self._config.grove else ()))
        return (Task.of(each, key) for each in creators for key in self.cache.keys(each, namespace))

    def _enqueue_namespace(self, namespace: str) -> None:
        for task in self._tasks_in(namespace):
            self.enqueue(task)

    def _has_tasks(self, namespace: str) -> bool:
        return next(self._tasks_in(namespace), None) is not None

    def _namespaces(self) -> Iterable[ObjectKey]:
        return {ObjectKey("", key.namespace) for resource in children.SHARED for key in self.cache.keys(resource)}
