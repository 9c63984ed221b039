"""Composition root: all that the pod-builder is made of, on one page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

from dynamo_shared.aio import Offload
from dynamo_shared.api import objects
from dynamo_shared.api.conditions import PLANNING
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    DYNAMO_CHECKPOINTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_NIM_REQUESTS,
    KAI_QUEUES,
    LEADER_WORKER_SETS,
    POD_CLIQUE_SCALING_GROUPS,
    POD_CLIQUE_SETS,
    POD_CLIQUES,
    PODS,
    SERVICE_ACCOUNTS,
    ObjectKey,
    Resource,
)
from dynamo_shared.runtime import Controller, Result, ServiceContext
from dynamo_shared.runtime.controller import Counts, Part, now
from dynamo_shared.runtime.debounce import Debounce
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.runtime.tasks import Paced, Task

from dynamo_pod_builder import artifact_images, checkpoints, children, cohorts, pods, surroundings
from dynamo_pod_builder.applying import Applier
from dynamo_pod_builder.checkpoints import woken_by
from dynamo_pod_builder.configuration import render_config
from dynamo_pod_builder.pod_events import PodEvents
from dynamo_pod_builder.reconcilers.checkpoint import CheckpointReconciler
from dynamo_pod_builder.reconcilers.cohort import CohortReconciler
from dynamo_pod_builder.reconcilers.component import ComponentReconciler
from dynamo_pod_builder.reconcilers.graph import GraphReconciler
from dynamo_pod_builder.reconcilers.graph.carry_out import Executor
from dynamo_pod_builder.reconcilers.graph.observe import GraphObserver
from dynamo_pod_builder.reconcilers.graph.report import GraphReport
from dynamo_pod_builder.reconcilers.legacy import LegacyReconciler
from dynamo_pod_builder.reconcilers.namespace import NamespaceReconciler
from dynamo_pod_builder.reconcilers.scaling import ScalingReconciler, components_of, other_generations
from dynamo_pod_builder.render import RenderConfig
from dynamo_pod_builder.routing import LEGACY, BuilderConcern, is_of_replicas, is_of_status, tasks_for
from dynamo_pod_builder.ssh_keys import SshKeys
from dynamo_pod_builder.status.checkpoint import PENDING
from dynamo_pod_builder.status.component import is_available
from dynamo_pod_builder.status.graph import INITIALIZING
from dynamo_pod_builder.surroundings import PullSecretLists, is_component_account

NAME = "pod-builder"
#: What is larger is rendered in a thread, of which there are so many: a component of a graph has about 1 KB, and takes
#: some milliseconds. Bytes.
LARGE_OBJECT, LARGE_AT_ONCE = 16 << 10, 2
READS: tuple[Resource, ...] = (
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_CHECKPOINTS,
    *LEGACY,
    DYNAMO_NIM_REQUESTS,
    DAEMON_SETS,
    *children.OWNED,
    POD_CLIQUES,
    POD_CLIQUE_SCALING_GROUPS,
    PODS,
    KAI_QUEUES,
)
#: What has a number of replicas that changes often.
SCALE_FIRST = frozenset({DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, DEPLOYMENTS, LEADER_WORKER_SETS})
#: Adapters of one graph that change together are reconciled together. Seconds.
SETTLE = 0.02


class PodBuilderService:
    """Graphs, component deployments, checkpoints and older kinds become Kubernetes objects; their status reports progress."""

    name = NAME

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        await _PodBuilder(context).serve()


class _PodBuilder(Controller):
    #: Each waits for one small write most of the time.
    urgent_workers = 64

    def __init__(self, context: ServiceContext) -> None:
        settings = context.settings
        # The watcher publishes none where the settings do without them.
        self._reads_queues = settings.orchestrators.kai_scheduler.enabled is not False
        super().__init__(context, NAME, tuple(each for each in READS if each != KAI_QUEUES or self._reads_queues))
        kube, cache = self.kube, self.cache
        cache.pack(DYNAMO_GRAPH_DEPLOYMENTS, *children.OWNED, POD_CLIQUES, POD_CLIQUE_SCALING_GROUPS, PODS)
        children.index(cache)
        pods.index(cache)
        cohorts.index(cache)
        checkpoints.index(cache)
        artifact_images.index(cache)
        surroundings.index(cache)
        applier = Applier(kube, cache)
        keys = SshKeys(kube, settings.mpi.ssh_secret_name, settings.mpi.ssh_secret_namespace)
        self._statuses = statuses = StatusWriter(kube, cache, context.clock, frozenset({PLANNING}))
        self._debounce = Debounce(context.clock)
        self._config = self._render_config()
        self._pull_secrets = PullSecretLists(
            kube, self.announcer, in_use=self._in_use, changed=self._enqueue_namespace, clock=context.clock
        )
        config, announcer, pod_events = (lambda: self._config), self.announcer, PodEvents(kube)
        self._graph_report = GraphReport(statuses, announcer, pod_events)
        large = Offload(above=LARGE_OBJECT, at_once=LARGE_AT_ONCE)
        self._reconcilers: dict[str, Callable[[ObjectKey], Awaitable[Result]]] = {
            BuilderConcern.GRAPH: GraphReconciler(
                GraphObserver(cache, config, now, self._pull_secrets),
                Executor(applier, keys, announcer),
                self._graph_report,
                applier,
                large,
            ).reconcile,
            BuilderConcern.COMPONENT: ComponentReconciler(
                cache, applier, statuses, announcer, config, now, self._pull_secrets, pod_events, large
            ).reconcile,
            BuilderConcern.SCALING: ScalingReconciler(cache, applier).reconcile,
            BuilderConcern.CHECKPOINT: CheckpointReconciler(
                kube, cache, applier, statuses, announcer, config, now
            ).reconcile,
            **{
                concern: LegacyReconciler(resource, cache, applier, statuses, announcer, now, large).reconcile
                for resource, concern in LEGACY.items()
            },
            BuilderConcern.NAMESPACE: NamespaceReconciler(cache, applier).reconcile,
            BuilderConcern.COHORT: CohortReconciler(cache, kube, announcer).reconcile,
        }

    def is_urgent(self, task: Task) -> bool:
        return task.concern == BuilderConcern.SCALING

    def background(self) -> Mapping[str, Part]:
        return {"pull-secrets": self._pull_secrets.run}

    def synced(self) -> None:
        """The cluster's resources decide what graphs become: where they change, all are reconciled."""
        before = self._config
        self._config = self._render_config()
        if self._config != before:
            self.enqueue_all()

    def _render_config(self) -> RenderConfig:
        listed = self.cache.list(KAI_QUEUES) if self._reads_queues else ()
        queues = [queue["metadata"]["name"] for queue in listed]
        return render_config(self.context.settings, self.reader.is_served, kai_queues=queues)

    def tasks_for(
        self, resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None
    ) -> Iterable[Task | Paced]:
        if resource == DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS and is_of_status(old, new):
            return
        tasks = tasks_for(resource, key, old, new, self._graph_of_set)
        if new is not None and resource in SCALE_FIRST and is_of_replicas(old, new):
            # Pods first: rendering again for a number alone, and its reports, may wait a little.
            if resource == DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS and (keys := list(components_of(self.cache, new))):
                yield from (Task(BuilderConcern.SCALING, each) for each in keys)
                self._debounce.after_one_more()
            for task in tasks:
                yield Paced(task, SETTLE + self._debounce.after_these())
            return
        if resource == DYNAMO_NIM_REQUESTS:
            yield from artifact_images.woken_by(self.cache, resource, key)
            return
        yield from tasks
        if resource == DYNAMO_COMPONENT_DEPLOYMENTS and (old is None or new is None):
            others = other_generations(self.cache, new or old or {})
            yield from (Task(BuilderConcern.COMPONENT, each) for each in others)
        yield from woken_by(self.cache, resource, key, old, new)

    def changed(self, resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None) -> None:
        if resource == KAI_QUEUES:
            self.synced()
        if resource == SERVICE_ACCOUNTS and is_component_account(old) != is_component_account(new):
            self._enqueue_namespace(key.namespace)
        if new is None and old is not None:
            self._statuses.forget(resource, old)
            if resource == DYNAMO_GRAPH_DEPLOYMENTS:
                # Every replica reports it: the owner may be stopped, or its claim on the way to another one. No event reports
                # the graph later, and the stream keeps one message of an id.
                self._graph_report.gone(old)

    def _graph_of_set(self, key: ObjectKey) -> str:
        owner = objects.controller_of(self.cache.get(POD_CLIQUE_SETS, key) or {"metadata": {}})
        return owner["name"] if owner else ""

    async def reconcile(self, task: Task) -> Result:
        return await self._reconcilers[task.concern](task.key)

    def _enqueue_namespace(self, namespace: str) -> None:
        """Pods of a namespace change: reconcile all that creates pods there."""
        for key in self.cache.keys(DYNAMO_COMPONENT_DEPLOYMENTS, namespace):
            self.enqueue(Task(BuilderConcern.COMPONENT, key))
        if self._config.grove:
            for key in self.cache.keys(DYNAMO_GRAPH_DEPLOYMENTS, namespace):
                self.enqueue(Task(BuilderConcern.GRAPH, key))

    def _in_use(self, namespace: str) -> bool:
        makers = (DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS)
        return any(self.cache.keys(resource, namespace) for resource in makers)

    def all_tasks(self) -> Iterator[Task]:
        concerns = {
            DYNAMO_GRAPH_DEPLOYMENTS: BuilderConcern.GRAPH,
            DYNAMO_COMPONENT_DEPLOYMENTS: BuilderConcern.COMPONENT,
            DYNAMO_CHECKPOINTS: BuilderConcern.CHECKPOINT,
            **LEGACY,
        }
        for resource, concern in concerns.items():
            yield from (Task(concern, key) for key in self.cache.keys(resource))
        namespaces = {key.namespace for resource in children.SHARED for key in self.cache.keys(resource)}
        for namespace in namespaces:
            yield Task(BuilderConcern.NAMESPACE, ObjectKey("", namespace))
        yield from (Task(BuilderConcern.COHORT, key) for key in cohorts.ended(self.cache))

    def counts(self) -> Counts:
        return {
            BuilderConcern.GRAPH: self.count_by(
                DYNAMO_GRAPH_DEPLOYMENTS, lambda graph: graph.get("status", {}).get("state", INITIALIZING)
            ),
            BuilderConcern.CHECKPOINT: self.count_by(
                DYNAMO_CHECKPOINTS, lambda checkpoint: checkpoint.get("status", {}).get("phase", PENDING)
            ),
            BuilderConcern.COMPONENT: self.count_by(
                DYNAMO_COMPONENT_DEPLOYMENTS, lambda each: "ready" if is_available(each) else "not_ready"
            ),
        }
