"""A process of the pod-builder: its reconcilers, a cache and the work queue, without threads and servers."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from dynamo_pod_builder.applier import Applier
from dynamo_pod_builder.pod_events import PodEvents
from dynamo_pod_builder.reconcilers.component import ComponentReconciler
from dynamo_pod_builder.reconcilers.graph import GraphReconciler
from dynamo_pod_builder.reconcilers.graph.captures import Captures
from dynamo_pod_builder.reconcilers.graph.carry_out import Executor
from dynamo_pod_builder.reconcilers.graph.observe import GraphObserver
from dynamo_pod_builder.reconcilers.graph.report import GraphReport
from dynamo_pod_builder.reconcilers.namespace import NamespaceReconciler
from dynamo_pod_builder.reconcilers.scaling import ScalingReconciler
from dynamo_pod_builder.reconcilers.unexpected import REPORTS
from dynamo_pod_builder.registrations import Registrations
from dynamo_pod_builder.render import RenderConfig
from dynamo_pod_builder.routing import routes
from dynamo_pod_builder.ssh_keys import SshKeys
from dynamo_pod_builder.surroundings import PullSecretLists
from dynamo_pod_builder.topology_schema import TopologySchema
from dynamo_shared.aio import Offload
from dynamo_shared.api.conditions import PLANNING
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    NAMESPACES,
    ObjectKey,
    Resource,
)
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import KubeError
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.debounce import Debounce
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.runtime.unexpected import UnexpectedFailures

from tests.building.clock import ManualClock
from tests.unit.announced import Announced
from tests.unit.pod_builder.indexed import NoSecrets, indexed
from tests.unit.routed import routed

from .faults import Client
from .world import Word, World

BASE = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
#: The back-off of a failed reconcile, without jitter. Seconds.
FIRST_RETRY, LONGEST_RETRY = 0.2, 30.0
#: Rounds of the event loop after which all tasks wait for the API server.
ROUNDS = 20


class _Keys:
    name = "mpi-keys"

    async def ensure(self, owner: KubeObject) -> None:
        """The keys exist."""


class _Explained:
    async def explain(self, _namespace: str, troubles: Any, _workload: Any = None, _lacking: str = "") -> list[Any]:
        return list(troubles)


class _Schema:
    async def fields(self) -> frozenset[str]:
        return frozenset()

    async def __call__(self, *_: Any) -> None:
        return None


class Process:
    """Starts with the whole feed read and all its objects queued, as after a restart."""

    retried: tuple[type[Exception], ...] = (KubeError,)
    """what a reconcile may raise; all else ends the story"""

    def __init__(self, world: World, client: Client, clock: ManualClock, config: RenderConfig) -> None:
        self.cache = indexed(clock=clock)
        self._clock = clock
        self._world = world
        self._due: dict[Task, float] = {}
        self._again: dict[Task, float] = {}
        self._running: dict[Task, asyncio.Task[Result]] = {}
        self._failures: dict[Task, int] = {}
        self._wire(cast("KubeClient", client), config)
        for words in world.feed.values():
            while words:
                self.take(words.popleft())
        self.cache.on_change(self._changed)
        self.enqueue_all()

    def _wire(self, kube: KubeClient, config: RenderConfig) -> None:
        cache, clock, announced = self.cache, self._clock, Announced()
        applier, statuses = Applier(kube, cache), StatusWriter(kube, cache, clock, frozenset({PLANNING}))
        secrets, keys = cast("PullSecretLists", NoSecrets()), cast("SshKeys", _Keys())
        pod_events, schema = cast("PodEvents", _Explained()), cast("TopologySchema", _Schema())
        large = Offload(above=10**9, at_once=1)

        def now() -> datetime:
            return BASE + timedelta(seconds=clock.now)

        self._report = GraphReport(statuses, announced, pod_events)
        graphs = GraphReconciler(
            GraphObserver(cache, lambda: config, now, secrets, schema, Registrations(kube)),
            Executor(applier, keys, announced),
            self._report,
            applier,
            large,
            Captures(kube, cache),
        )
        components = ComponentReconciler(
            cache, applier, statuses, announced, lambda: config, now, secrets, pod_events, large, keys
        )
        of_objects = {DYNAMO_GRAPH_DEPLOYMENTS: graphs.reconcile, DYNAMO_COMPONENT_DEPLOYMENTS: components.reconcile}
        unexpected = UnexpectedFailures("pod-builder", cache, statuses, announced, now, REPORTS)
        self._reconcilers = {
            **{each.plural: unexpected.reported(each, reconcile) for each, reconcile in of_objects.items()},
            DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.plural: ScalingReconciler(cache, applier).reconcile,
            NAMESPACES.plural: NamespaceReconciler(cache, applier).reconcile,
        }
        self._routes = routes(cache, Debounce(clock), statuses.progress)

    def enqueue_all(self) -> None:
        """Queue all objects again."""
        for resource in (DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS):
            for key in sorted(self.cache.keys(resource)):
                self._enqueue(Task.of(resource, key))
        self._enqueue(Task(NAMESPACES.plural, ObjectKey("", "ns")))

    def take(self, word: Word) -> None:
        """Read a message of STATE."""
        resource, key, obj, version = word
        if obj is None or not self.cache.confirm(resource, key, version):
            self.cache.take(resource, key, obj, version)

    @property
    def due(self) -> list[Task]:
        """The tasks that can start now."""
        return sorted(task for task, at in self._due.items() if at <= self._clock.now and task not in self._running)

    @property
    def next_at(self) -> float | None:
        """When the next task is due, or was; None if no task waits."""
        return min(self._due.values(), default=None)

    @property
    def failing(self) -> list[Task]:
        """Tasks that are retried because they raised."""
        return list(self._failures)

    @property
    def working(self) -> bool:
        """Whether a reconcile is running."""
        return bool(self._running)

    def begin(self, task: Task) -> None:
        """Start a reconcile that is due."""
        del self._due[task]
        self._running[task] = asyncio.ensure_future(self._reconcilers[task.concern](task.key))

    async def settle(self) -> None:
        """Run until every task waits for the API server, and requeue ended tasks as they request.

        Raises the error of a reconcile unless it is retried.
        """
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        for task in [task for task, running in self._running.items() if running.done()]:
            try:
                self._ended(task, self._running.pop(task).result())
            except self.retried:
                failures = self._failures[task] = self._failures.get(task, 0) + 1
                self._enqueue(task, min(LONGEST_RETRY, FIRST_RETRY * 2 ** (failures - 1)))
            if task in self._again:
                self._due[task] = min(self._due.get(task, self._again[task]), self._again.pop(task))

    def _ended(self, task: Task, result: Result) -> None:
        self._failures.pop(task, None)
        if result.requeue_after is not None:
            self._enqueue(task, result.requeue_after)

    def correct(self) -> None:
        """Read the objects from the API server that STATE has not confirmed in time."""
        for key, write in self.cache.overdue():
            self.cache.correct(key, write, self._world.objects.get((write.resource.id, key)))

    async def stop(self, *, hard: bool) -> list[asyncio.Task[Result]]:
        """Start nothing more; `hard` cancels running tasks. Returns the running ones."""
        running = list(self._running.values())
        if hard:
            for each in running:
                each.cancel()
            for _ in range(ROUNDS):
                await asyncio.sleep(0)
        return [each for each in running if not each.done()]

    def _changed(self, resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None) -> None:
        for task, after in routed(self._routes, resource, key, old, new):
            if task.concern in self._reconcilers:
                self._enqueue(task, after)
        if old is not None and new is None and resource == DYNAMO_GRAPH_DEPLOYMENTS:
            self._report.gone(old)

    def _enqueue(self, task: Task, after: float = 0.0) -> None:
        waiting, at = self._again if task in self._running else self._due, self._clock.now + after
        waiting[task] = min(waiting.get(task, at), at)
