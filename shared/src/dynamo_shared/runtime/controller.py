"""The shell of every reconciling service: it reads STATE, waits for the first full list, and reconciles what changed.

A service declares what it reads and wires tables: which tasks follow from a change, and what a task does. The shell
provides everything else: the cache, the queue, partitions shared with other replicas, namespaces that another platform
manages, traces, metrics.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TypeAlias, TypeVar

from dynamo_shared.aio import spread
from dynamo_shared.api import namespace_scope
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import LEASES, ObjectKey, Resource, key_of
from dynamo_shared.bus import EventPublisher
from dynamo_shared.bus.tracing import TRACEPARENT, extract, is_traced, traceparent
from dynamo_shared.kube import get_if_present
from dynamo_shared.kube.errors import Conflict, Forbidden, KubeError, NamespaceTerminating
from dynamo_shared.kube.events import EventRecorder
from dynamo_shared.leases.rendezvous import partition_of
from dynamo_shared.runtime import own_writes
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.runtime.health import HealthState
from dynamo_shared.runtime.metrics import Outcome
from dynamo_shared.runtime.own_writes import ReadOwnership
from dynamo_shared.runtime.routes import CacheChange, Reconciler, TaskRoute
from dynamo_shared.runtime.service import ServiceContext
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.runtime.tracing import tracer
from dynamo_shared.runtime.workqueue import Result, WorkQueue
from dynamo_shared.state import ObjectCache, StateReader
from dynamo_shared.state.versions import Version, resource_version, version_of

T = TypeVar("T")

Part: TypeAlias = Callable[[], Awaitable[object]]
"""Starts a background part of a service; called again if the part fails."""

#: How long unsent events may delay an orderly shutdown. Seconds.
FLUSH_WITHIN = 5.0
#: After this time it is reported that objects of gained keys are not read yet. Seconds.
UNREAD_AFTER = 30.0
#: Interval of checks for the end of another platform's claim on a namespace, and of questions about it. Seconds.
LEASE_INTERVAL = 5.0
#: For how long a namespace still belongs to another platform after its claim was deleted: that platform's next leader
#: creates the claim again. Longer than LEASE_INTERVAL. Seconds.
HANDOVER = 10.0
#: Interval of counting, like the reference's (operator behaviour, section 10). Seconds.
COUNT_INTERVAL = 30.0
#: Name of the index of states for the counts.
_STATES = "states"
#: Limit of resources that a message names; the message only counts further ones.
NAMED = 3


class Controller:
    """A service's shell. `wire` sets what it does, `serve` runs it; `kube` writes with the service's own field manager."""

    def __init__(
        self,
        context: ServiceContext,
        name: str,
        reads: Iterable[Resource],
        *,
        of_share: Collection[Resource] = (),
        identity: str = "",
    ) -> None:
        """`reads`: the resources that it reads; of those that are also in `of_share`, only objects of this replica's
        partitions.

        Objects in `of_share` are indexed only by namespace, and only their owner reports their end: for other replicas
        they do not exist. `identity`: the service's name in the cluster, if it differs from `name`: as owner of keys,
        field manager and reporter.
        """
        platform = context.settings.platform
        identity = identity or name
        manager = f"dynamo-{identity}"
        self.context = context
        self.name = name
        self._state_part, self._share_part = f"{name}: STATE", f"{name}: share"
        ownership = context.ownership(identity)
        self.kube = context.kube.acting_as(manager).guarded(ownership.may_write)
        self.cache = ObjectCache()
        self.reader = StateReader(
            context.bus,
            platform.cluster_name,
            dict.fromkeys((*reads, LEASES)),
            self.cache,
            of_share=of_share,
            keeps=ownership.keeps,
        )
        self.ownership = ReadOwnership(ownership, self.reader, self.cache)
        self.recorder = EventRecorder(self.kube, manager, count=context.metrics.events(manager))
        self.publisher = EventPublisher(context.bus, platform.cluster_name)
        self.announcer = Announcer(self.recorder, self.publisher)
        self.supervisor = context.supervisor(name)
        self._queue: WorkQueue[Task] = context.queue(name, lambda task: _namespace(task.key), self._is_urgent)
        #: The trace of the change that first requested a task; later changes join the waiting task. At most one per queued key.
        self._causes: dict[Task, str] = {}
        #: By namespace: until when a claim that another platform deleted there still counts.
        self._handed_over: dict[str, float] = {}
        #: By namespace: until when a claim that another platform renewed counts, by this process's own clock.
        self._renewed: dict[str, float] = {}
        #: By namespace: the version of an expired claim that the API server has, too.
        self._expired: dict[str, Version] = {}
        self.wire({})

    def wire(
        self,
        reconcilers: Mapping[str, Reconciler],
        routes: Iterable[TaskRoute] = (),
        *,
        effects: Mapping[Resource, Callable[[CacheChange], object]] | None = None,
        counted: Mapping[Resource, Callable[[KubeObject], str]] | None = None,
        background: Mapping[str, Part] | None = None,
        synced: Callable[[], None] = lambda: None,
    ) -> None:
        """Set what the service does.

        `reconcilers`, by concern. A change is routed by all `routes` of its resource, in their order; `effects` are
        called afterwards, for work that needs no task. `counted` returns an object's state, which depends only on the
        object: this replica's objects are counted by it for the metric. `background`: parts by name that run once
        everything is read; a part that fails is started again. `synced` is called when everything is read, before any
        task, and again when a resource was listed again.
        """
        self._reconcilers = reconcilers
        self._routes: defaultdict[Resource, list[TaskRoute]] = defaultdict(list)
        for each in routes:
            self._routes[each.resource].append(each)
        self._effects = effects or {}
        self._counted = counted or {}
        for resource, state in self._counted.items():
            self.cache.add_index(resource, _STATES, partial(self._states, resource, state))
        self._background = background or {}
        self._synced = synced

    def _report_quarantine(self, words: str) -> None:
        if words:
            self.context.health.set(self._state_part, HealthState.DEGRADED, words)
        else:
            self.context.health.forget(self._state_part)

    def _report_waiting(self, resources: list[str]) -> None:
        words = f"waiting until the watcher has listed {_named(resources)}"
        self.context.health.set(self.name, HealthState.FAILED, words)

    async def _report_unread(self) -> None:
        """Report gained keys whose objects are not read within `UNREAD_AFTER`: these keys are not reconciled yet."""
        clock = self.context.clock
        last_covered = clock()
        while True:
            unread = self.reader.unread()
            last_covered = last_covered if unread else clock()
            if clock() - last_covered >= UNREAD_AFTER:
                words = f"objects of gained partitions are not reconciled until the watcher has listed {_named(unread)}"
                self.context.health.set(self._share_part, HealthState.DEGRADED, words)
            else:
                self.context.health.forget(self._share_part)
            await asyncio.sleep(LEASE_INTERVAL)

    async def serve(self) -> None:
        """Read, wait until everything is read, then work."""
        platform, health = self.context.settings.platform, self.context.health
        for resource in self.reader.resources:
            cached = self.context.metrics.cached_objects.labels(self.name, resource.id)
            cached.set_function(partial(self.cache.count, resource))

        def keep(tasks: asyncio.TaskGroup, part: str, work: Part, *, essential: bool = False) -> None:
            tasks.create_task(self.supervisor.keep(part, work, essential=essential), name=part)

        try:
            async with self.recorder, asyncio.TaskGroup() as reading:
                self.reader.on_quarantine(self._report_quarantine)
                keep(reading, "events", self.publisher.run)
                keep(reading, "state", self.reader.run)
                # With only a part of the objects, a reconciler would consider the others missing.
                await self.reader.synced(self._report_waiting)
                self._synced()
                self.cache.on_change(self._changed)
                self.reader.on_resync(lambda _: self._synced())
                self._share_with_other_replicas()
                self.enqueue_all()
                try:
                    async with asyncio.TaskGroup() as working:
                        keep(working, "workers", self._work, essential=True)
                        keep(working, "own writes", lambda: own_writes.check_always(self.cache, self.kube))
                        keep(working, "resync", lambda: self._resync(platform.resync))
                        keep(working, "count", self._count)
                        keep(working, "leases", self._sync_leases)
                        keep(working, "share", self._report_unread)
                        for name, part in self._background.items():
                            keep(working, name, part)
                        health.ok(self.name)
                finally:
                    # When the process has ended, another replica takes over its keys at once.
                    if self.ownership.is_shared:
                        await own_writes.confirmed(self.cache)
        finally:
            # The next run only reports what it reads itself.
            for reported in (self._state_part, self._share_part):
                health.forget(reported)
            await self.publisher.flush(FLUSH_WITHIN)

    def enqueue(self, task: Task, after: float = 0.0) -> None:
        """Request a task in `after` seconds; ignored if another replica owns the key."""
        if self.ownership.owns(task.key):
            if cause := traceparent():
                self._causes.setdefault(task, cause)
            self._queue.add(task, after)

    def enqueue_all(self, concerns: Callable[[ObjectKey], bool] = lambda _: True, *, within: float = 0.0) -> None:
        """Request every task of this replica whose key is concerned, spread over `within` seconds."""
        for concern, reconciler in self._reconcilers.items():
            for key in filter(concerns, reconciler.every()):
                after = spread(within, least=0.0, randomness=self.context.randomness) if within else 0.0
                self.enqueue(Task(concern, key), after)

    def of_each(self, resource: Resource, keys: Callable[[KubeObject], Iterable[T]]) -> Iterator[T]:
        """What a function returns for every object of a resource; objects on which it fails are skipped."""
        for obj in self.cache.list(resource):
            with self.supervisor.isolated(resource, key_of(obj)):
                yield from tuple(keys(obj))

    def counts(self) -> Mapping[str, Counter[tuple[str, str]]]:
        """By concern: the number of this replica's objects for each (namespace, state)."""
        return {resource.plural: self._count_by_state(resource) for resource in self._counted}

    def _count_by_state(self, resource: Resource) -> Counter[tuple[str, str]]:
        indexed = self.cache.indexed(resource, _STATES)
        return Counter((key.namespace, state) for state, key in indexed if self.ownership.owns(key))

    def _states(self, resource: Resource, state: Callable[[KubeObject], str], obj: KubeObject) -> Iterable[str]:
        with self.supervisor.isolated(resource, key_of(obj)):
            return (state(obj),)
        return ()

    def is_held(self, namespace: str) -> bool:
        """Whether another platform that serves a single namespace manages this one, while this platform serves all."""
        if self.context.settings.served:
            return False
        lease = self.cache.get(LEASES, _claim_on(namespace))
        if lease is None:
            return self.context.clock() < self._handed_over.get(namespace, 0.0)
        return self._is_live(lease) or self._expired.get(namespace) != version_of(lease)

    def _is_live(self, lease: KubeObject) -> bool:
        """A claim counts by its time of day, and while it is renewed: the clocks of two platforms may differ."""
        renewed = self._renewed.get(lease["metadata"]["namespace"], 0.0)
        return namespace_scope.is_live(lease, now()) or self.context.clock() < renewed

    def _share_with_other_replicas(self) -> None:
        """Reconcile gained keys; before keys are released, finish their work; abort the work on lost keys at once."""
        self.ownership.on_gain(lambda gained: self.enqueue_all(lambda key: partition_of(key) in gained))
        self.ownership.before_release(self._give_away)
        self.ownership.on_loss(self._lose)

    async def _give_away(self, gone: Callable[[ObjectKey], bool]) -> None:
        await self._queue.drain(lambda task: gone(task.key))
        self._forget_causes(gone)

    def _lose(self) -> None:
        self._queue.abort(lambda task: not self.ownership.owns(task.key))
        self._forget_causes(lambda key: not self.ownership.owns(key))

    def _forget_causes(self, gone: Callable[[ObjectKey], bool]) -> None:
        """Drop the traces of keys that the queue has dropped, because no reconcile will use them."""
        self._causes = {task: cause for task, cause in self._causes.items() if not gone(task.key)}

    def _changed(self, resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None) -> None:
        # After a set-back, even a status that only this service writes may differ: treat the object as new.
        change = CacheChange(resource, key, None if _is_set_back(old, new) else old, new)
        for route in self._routes.get(resource, ()):
            try:
                for task, after in route.tasks(change):
                    self.enqueue(task, after)
            except Exception as error:  # a failing route must not prevent the others
                self.supervisor.failed(resource, key, error)
        if resource.id == LEASES.id:
            self._claim_changed(key, old, new)
        if (effect := self._effects.get(resource)) is not None:
            with self.supervisor.isolated(resource, key):
                effect(CacheChange(resource, key, old, new))

    def _claim_changed(self, key: ObjectKey, old: KubeObject | None, new: KubeObject | None) -> None:
        if old is not None and new is not None and old.get("spec") != new.get("spec"):
            self._renewed[key.namespace] = self.context.clock() + namespace_scope.duration_of(new)
        if new is None:
            if old is not None and self._is_live(old):
                # Its leader has shut down normally: `_sync_leases` detects whether another one follows.
                self._handed_over[key.namespace] = self.context.clock() + HANDOVER
            else:
                self.enqueue_all(lambda each: _namespace(each) == key.namespace)
            self._renewed.pop(key.namespace, None)
            self._expired.pop(key.namespace, None)

    def _is_urgent(self, task: Task) -> bool:
        return self._reconcilers[task.concern].urgent_workers > 0

    async def _work(self) -> None:
        workers = self.context.settings.platform.workers
        # One namespace may use all configured workers; the spare ones remain for other namespaces.
        spare = max(1, workers // 4)
        urgent = sum(each.urgent_workers for each in self._reconcilers.values())
        await self._queue.run(workers + spare, self._reconcile, urgent_workers=urgent, reserved=spare)

    async def _reconcile(self, task: Task) -> Result:
        if not self.ownership.owns(task.key) or self.is_held(_namespace(task.key)):
            self._causes.pop(task, None)
            return Result()
        traced = self._causes.pop(task, "")
        if not (traced or is_traced()):
            return await self._measured(task)
        cause = extract({TRACEPARENT: traced}) if traced else None
        about = {"key": str(task.key)}
        with tracer.start_as_current_span(f"reconcile {task.concern}", context=cause, attributes=about):
            return await self._measured(task)

    async def _measured(self, task: Task) -> Result:
        metrics, kind, namespace = self.context.metrics, task.concern, _namespace(task.key)
        started = time.perf_counter()
        try:
            result = await self._reconcilers[task.concern].reconcile(task.key)
        except NamespaceTerminating:
            # The object is deleted with its namespace: nothing remains to be done or retried.
            result = Result()
        except Conflict:
            # Another writer was faster: the next attempt uses its version and succeeds.
            metrics.reconciled(kind, namespace, "conflict", time.perf_counter() - started)
            raise
        except Exception as error:
            metrics.failed(kind, namespace, error)
            metrics.reconciled(kind, namespace, "error", time.perf_counter() - started)
            raise
        outcome: Outcome = "success" if result.requeue_after is None else "requeue"
        metrics.reconciled(kind, namespace, outcome, time.perf_counter() - started)
        return result

    async def _sync_leases(self) -> None:
        """Reconcile a namespace when its claim expires, which causes no event. A deleted claim may be created again."""
        before: set[str] = set()
        while True:
            namespaces = {lease["metadata"]["namespace"] for lease in self.cache.list(LEASES)} | {*self._handed_over}
            before |= {namespace for namespace in namespaces if self.is_held(namespace)}
            for namespace in before:
                await self._confirm_expiry(namespace)
            held = {namespace for namespace in namespaces if self.is_held(namespace)}
            if released := before - held:
                self.enqueue_all(lambda key: _namespace(key) in released)
            self._handed_over = {each: until for each, until in self._handed_over.items() if each in held}
            # A claim may be deleted while the API server is asked about it.
            self._expired = {each: version for each, version in self._expired.items() if each in namespaces}
            before = held
            await asyncio.sleep(LEASE_INTERVAL)

    async def _confirm_expiry(self, namespace: str) -> None:
        """Ask the API server about a claim that has expired: while NATS or the watcher is unavailable, STATE lacks its
        renewals, and the other platform still works in the namespace.
        """
        lease = self.cache.get(LEASES, _claim_on(namespace))
        if lease is None or self._is_live(lease):
            return
        try:
            current = await get_if_present(self.kube, LEASES, _claim_on(namespace))
        except Forbidden:
            # Rights of an earlier chart: only STATE reports claims.
            current = None
        except KubeError:
            return
        if current is None or version_of(current) == version_of(lease):
            self._expired[namespace] = version_of(lease)
        else:
            self.cache.put(LEASES, current)

    async def _resync(self, every: float) -> None:
        """Reconcile everything at intervals, whatever events came: level-triggered, not only edge-triggered. The keys
        are spread over the whole interval: all graphs at once would delay the ones that users wait for.
        """
        while True:
            await asyncio.sleep(every)
            self.enqueue_all(within=every)

    async def _count(self) -> None:
        while True:
            for concern, counted in self.counts().items():
                self.context.metrics.resources.replace(concern, counted)
            self.context.metrics.keep_namespaces(self._reconcilers, self.cache.namespaces())
            await asyncio.sleep(COUNT_INTERVAL)


def _named(resources: list[str]) -> str:
    more = f" and {len(resources) - NAMED} more" if len(resources) > NAMED else ""
    return f"{', '.join(resources[:NAMED])}{more}"


def _is_set_back(old: KubeObject | None, new: KubeObject | None) -> bool:
    """Whether the data store was set back: the object has an older version than before."""
    if old is None or new is None:
        return False
    before, after = old["metadata"].get("resourceVersion"), new["metadata"].get("resourceVersion")
    return resource_version(after) < resource_version(before)


def now() -> datetime:
    """The time of day, for timestamps in objects."""
    return datetime.now(UTC)


def _claim_on(namespace: str) -> ObjectKey:
    return ObjectKey(namespace, namespace_scope.NAME)


def _namespace(key: ObjectKey) -> str:
    return key.namespace or key.name
