"""Composition root: all that the pod-builder is made of, on one page."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from dynamo_shared.api import namespace_scope
from dynamo_shared.api.resources import (
    DAEMON_SETS,
    DYNAMO_CHECKPOINTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    KAI_QUEUES,
    LEASES,
    POD_CLIQUE_SCALING_GROUPS,
    POD_CLIQUE_SETS,
    POD_CLIQUES,
    PODS,
    SERVICE_ACCOUNTS,
    ObjectKey,
    Resource,
    key_of,
)
from dynamo_shared.bus import EventPublisher, ObjectCache, StateReader
from dynamo_shared.bus.tracing import TRACEPARENT, extract, traceparent
from dynamo_shared.kube.events import EventRecorder
from dynamo_shared.runtime import Result, ServiceContext, State, WorkQueue
from dynamo_shared.runtime.metrics import Outcome
from dynamo_shared.runtime.tracing import span

from dynamo_pod_builder import children, pods
from dynamo_pod_builder.applying import Applier, controller_of
from dynamo_pod_builder.cohorts import has_ended
from dynamo_pod_builder.configuration import render_config
from dynamo_pod_builder.events import CheckpointReporter, Reporter
from dynamo_pod_builder.pod_events import PodEvents
from dynamo_pod_builder.reconcilers import restoring
from dynamo_pod_builder.reconcilers.checkpoint import CheckpointReconciler
from dynamo_pod_builder.reconcilers.cohort import CohortReconciler
from dynamo_pod_builder.reconcilers.component import ComponentReconciler
from dynamo_pod_builder.reconcilers.graph import GraphReconciler
from dynamo_pod_builder.reconcilers.namespace import NamespaceReconciler
from dynamo_pod_builder.reconcilers.restoring import Checkpoints, woken_by
from dynamo_pod_builder.render import RenderConfig
from dynamo_pod_builder.routing import Concern, Task, tasks_for
from dynamo_pod_builder.ssh_keys import SshKeys
from dynamo_pod_builder.status.checkpoint import PENDING
from dynamo_pod_builder.status.component import is_available
from dynamo_pod_builder.status.graph import INITIALIZING
from dynamo_pod_builder.surroundings import PullSecretLists, is_component_account
from dynamo_pod_builder.writing import StatusWriter

KubeObject = dict[str, Any]

NAME = "pod-builder"
FIELD_MANAGER = "dynamo-pod-builder"
READS: tuple[Resource, ...] = (
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_CHECKPOINTS,
    DAEMON_SETS,
    *children.OWNED,
    POD_CLIQUES,
    POD_CLIQUE_SCALING_GROUPS,
    PODS,
    KAI_QUEUES,
    LEASES,
)
#: How long news that is still on its way may hold up an orderly end. Seconds.
FLUSH_WITHIN = 5.0
#: How soon it is seen that a namespace is looked after no more. Seconds.
LEASE_INTERVAL = 5.0
#: The reference's interval (operator behaviour, section 10). Seconds.
COUNT_INTERVAL = 30.0


class PodBuilderService:
    """Graphs, component deployments and checkpoints become Kubernetes objects; their status tells how far."""

    name = NAME

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        await _PodBuilder(context).serve()


class _PodBuilder:
    def __init__(self, context: ServiceContext) -> None:
        settings, kube = context.settings, context.kube.acting_as(FIELD_MANAGER)
        self._context = context
        self._cache = cache = ObjectCache()
        children.index(cache)
        pods.index(cache)
        restoring.index(cache)
        self._reader = StateReader(context.bus, settings.platform.cluster_name, READS, cache)
        self._recorder = EventRecorder(kube, FIELD_MANAGER)
        self._publisher = EventPublisher(context.bus, settings.platform.cluster_name)
        self._reporter = Reporter(self._recorder, self._publisher)
        self._ownership = context.ownership(NAME)
        self._queue: WorkQueue[Task] = context.queue(NAME)
        #: The trace of the change that asked for a task first; later ones find it waiting. As many as the queue has keys.
        self._causes: dict[Task, str] = {}
        applier = Applier(kube, cache)
        keys = SshKeys(kube, settings.mpi.ssh_secret_name, settings.mpi.ssh_secret_namespace)
        self._statuses = statuses = StatusWriter(kube, cache, context.clock)
        self._config = self._render_config()
        self._pull_secrets = PullSecretLists(
            kube, self._recorder, in_use=self._in_use, changed=self._enqueue_namespace, clock=context.clock
        )
        around = (self._pull_secrets, PodEvents(kube))
        shared = (cache, applier, statuses, self._reporter, lambda: self._config, _now, *around)
        checkpoints = Checkpoints(kube, cache)
        checkpoint_reporter = CheckpointReporter(self._recorder, self._publisher)
        self._reconcilers: dict[Concern, Callable[[ObjectKey], Awaitable[Result]]] = {
            Concern.GRAPH: GraphReconciler(*shared, checkpoints, keys=keys).reconcile,
            Concern.COMPONENT: ComponentReconciler(*shared, checkpoints).reconcile,
            Concern.CHECKPOINT: CheckpointReconciler(
                kube, cache, applier, statuses, checkpoint_reporter, lambda: self._config, _now
            ).reconcile,
            Concern.NAMESPACE: NamespaceReconciler(cache, applier).reconcile,
            Concern.COHORT: CohortReconciler(cache, kube, self._reporter).reconcile,
        }

    async def serve(self) -> None:
        """Read, wait until all is read, then work."""
        platform = self._context.settings.platform
        try:
            async with self._recorder, asyncio.TaskGroup() as tasks:
                tasks.create_task(self._publisher.run(), name="events")
                tasks.create_task(self._reader.run(), name="state")
                self._context.health.set(NAME, State.FAILED, "waiting for the watcher's first full list")
                # Working on half a picture would take what is not yet read for missing.
                await self._reader.synced()
                self._look_at_cluster()
                self._cache.on_change(self._changed)
                self._reader.on_resync(lambda _: self._look_at_cluster())
                self._share_with_other_replicas()
                self._enqueue_all()
                tasks.create_task(self._queue.run(platform.workers, self._reconcile), name="workers")
                tasks.create_task(self._resync(platform.resync), name="resync")
                tasks.create_task(self._pull_secrets.run(), name="pull-secrets")
                tasks.create_task(self._count(), name="count")
                tasks.create_task(self._look_at_leases(), name="leases")
                self._context.health.ok(NAME)
        finally:
            await self._publisher.flush(FLUSH_WITHIN)

    def _look_at_cluster(self) -> None:
        """What the cluster has decides what graphs become: where that changes, all are looked at."""
        before = self._config
        self._config = self._render_config()
        if self._config != before:
            self._enqueue_all()

    def _render_config(self) -> RenderConfig:
        queues = [queue["metadata"]["name"] for queue in self._cache.list(KAI_QUEUES)]
        return render_config(self._context.settings, self._reader.is_served, kai_queues=queues)

    def _share_with_other_replicas(self) -> None:
        """Look at what is gained, end what is under way before giving keys away, and at once where they are lost."""
        self._ownership.on_gain(self._enqueue_all)
        self._ownership.before_release(lambda gone: self._queue.drain(lambda task: gone(task.key)))
        self._ownership.on_loss(lambda: self._queue.abort(lambda task: not self._ownership.owns(task.key)))

    def _changed(self, resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None) -> None:
        cause = traceparent()
        wanted = tasks_for(resource, key, old, new, self._graph_of_set)
        for task in (*wanted, *woken_by(self._cache, resource, key, old, new)):
            if self._ownership.owns(task.key):
                if cause:
                    self._causes.setdefault(task, cause)
                self._queue.add(task)
        if resource == KAI_QUEUES:
            self._look_at_cluster()
        if resource == LEASES and new is None:
            self._enqueue_all()
        if resource == SERVICE_ACCOUNTS and is_component_account(old) != is_component_account(new):
            self._enqueue_namespace(key.namespace)
        if new is None and old is not None:
            self._statuses.forget(resource, old)
            if resource == DYNAMO_GRAPH_DEPLOYMENTS and self._ownership.owns(key):
                self._reporter.gone(old)

    def _is_held(self, namespace: str) -> bool:
        """Whether another platform looks after a namespace: one that serves it alone, while this one serves all."""
        if self._context.settings.namespace.restricted:
            return False
        lease = self._cache.get(LEASES, ObjectKey(namespace, namespace_scope.NAME))
        return lease is not None and namespace_scope.is_live(lease, _now())

    async def _look_at_leases(self) -> None:
        """Nobody tells of a lease that runs out: its namespace is ours to look after again."""
        before: set[str] = set()
        while True:
            namespaces = {lease["metadata"]["namespace"] for lease in self._cache.list(LEASES)}
            held = {namespace for namespace in namespaces if self._is_held(namespace)}
            if before - held:
                self._enqueue_all()
            before = held
            await asyncio.sleep(LEASE_INTERVAL)

    def _graph_of_set(self, key: ObjectKey) -> str:
        owner = controller_of(self._cache.get(POD_CLIQUE_SETS, key) or {"metadata": {}})
        return owner["name"] if owner else ""

    async def _reconcile(self, task: Task) -> Result:
        if not self._ownership.owns(task.key) or self._is_held(task.key.namespace or task.key.name):
            self._causes.pop(task, None)
            return Result()
        cause = extract({TRACEPARENT: self._causes.pop(task, "")})
        with span(f"reconcile {task.concern.value}", parent=cause, key=str(task.key)):
            return await self._look_at(task)

    async def _look_at(self, task: Task) -> Result:
        metrics, kind = self._context.metrics, task.concern.value
        namespace = task.key.namespace or task.key.name
        started = time.perf_counter()
        try:
            result = await self._reconcilers[task.concern](task.key)
        except Exception as error:
            metrics.failed(kind, namespace, error)
            metrics.reconciled(kind, namespace, "error", time.perf_counter() - started)
            raise
        outcome: Outcome = "success" if result.requeue_after is None else "requeue"
        metrics.reconciled(kind, namespace, outcome, time.perf_counter() - started)
        return result

    def _enqueue_all(self) -> None:
        for task in self._tasks():
            if self._ownership.owns(task.key):
                self._queue.add(task)

    def _enqueue_namespace(self, namespace: str) -> None:
        """Pods of a namespace are made otherwise now: all that makes pods there looks again."""
        keys = [
            Task(Concern.COMPONENT, key_of(each)) for each in self._cache.list(DYNAMO_COMPONENT_DEPLOYMENTS, namespace)
        ]
        if self._config.grove:
            keys += [
                Task(Concern.GRAPH, key_of(each)) for each in self._cache.list(DYNAMO_GRAPH_DEPLOYMENTS, namespace)
            ]
        for task in keys:
            if self._ownership.owns(task.key):
                self._queue.add(task)

    def _in_use(self, namespace: str) -> bool:
        makers = (DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS)
        return any(self._cache.list(resource, namespace) for resource in makers)

    def _tasks(self) -> Iterator[Task]:
        for graph in self._cache.list(DYNAMO_GRAPH_DEPLOYMENTS):
            yield Task(Concern.GRAPH, key_of(graph))
        for component in self._cache.list(DYNAMO_COMPONENT_DEPLOYMENTS):
            yield Task(Concern.COMPONENT, key_of(component))
        for checkpoint in self._cache.list(DYNAMO_CHECKPOINTS):
            yield Task(Concern.CHECKPOINT, key_of(checkpoint))
        namespaces = {key_of(obj).namespace for resource in children.SHARED for obj in self._cache.list(resource)}
        for namespace in namespaces:
            yield Task(Concern.NAMESPACE, ObjectKey("", namespace))
        for pod in self._cache.list(PODS):
            if has_ended(pod):
                yield Task(Concern.COHORT, key_of(pod))

    async def _resync(self, every: float) -> None:
        """Look at everything now and then, whatever was heard: level, not edge."""
        while True:
            await asyncio.sleep(every)
            self._enqueue_all()

    async def _count(self) -> None:
        """How many graphs, components and checkpoints there are in which state, for the metric; each counted by its owner."""
        while True:
            self._context.metrics.resources.replace(
                Concern.GRAPH.value,
                Counter(
                    (graph["metadata"]["namespace"], graph.get("status", {}).get("state", INITIALIZING))
                    for graph in self._cache.list(DYNAMO_GRAPH_DEPLOYMENTS)
                    if self._ownership.owns(key_of(graph))
                ),
            )
            self._context.metrics.resources.replace(
                Concern.CHECKPOINT.value,
                Counter(
                    (checkpoint["metadata"]["namespace"], checkpoint.get("status", {}).get("phase", PENDING))
                    for checkpoint in self._cache.list(DYNAMO_CHECKPOINTS)
                    if self._ownership.owns(key_of(checkpoint))
                ),
            )
            self._context.metrics.resources.replace(
                Concern.COMPONENT.value,
                Counter(
                    (component["metadata"]["namespace"], "ready" if is_available(component) else "not_ready")
                    for component in self._cache.list(DYNAMO_COMPONENT_DEPLOYMENTS)
                    if self._ownership.owns(key_of(component))
                ),
            )
            await asyncio.sleep(COUNT_INTERVAL)


def _now() -> datetime:
    return datetime.now(UTC)
