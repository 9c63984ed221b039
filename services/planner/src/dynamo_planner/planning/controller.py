"""The controller of planning: a runner for every graph that requests one, while this replica owns the graph."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
from dynamo_shared.aio import Offload
from dynamo_shared.api import objects
from dynamo_shared.api.conditions import PLANNING
from dynamo_shared.api.contracts.planner import PlanningPolicy
from dynamo_shared.api.device_claims import NAMED_BY, KnownClaims, keys_named, of_claim
from dynamo_shared.api.gpus import ReplicaGpus, of_replica
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.planner_names import profile_data_name
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    LEASES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    ObjectKey,
    Resource,
    key_of,
)
from dynamo_shared.bus.commands import CommandSender
from dynamo_shared.bus.nats import NatsListener
from dynamo_shared.kube import get_if_present
from dynamo_shared.runtime import Controller, Result, ServiceContext
from dynamo_shared.runtime.controller import now
from dynamo_shared.runtime.outbound import platform_hosts
from dynamo_shared.runtime.routes import CacheChange, Reconciler, TaskRoute
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state import StateReader
from dynamo_shared.wire.discovered import WORKERS

from dynamo_planner.core.decision import Effects, Policy, Tick
from dynamo_planner.core.observation import Pool
from dynamo_planner.core.policies import make_policy
from dynamo_planner.inputs.outcome import InputError
from dynamo_planner.inputs.prometheus.client import PrometheusConnections
from dynamo_planner.inputs.prometheus.options import prometheus_options
from dynamo_planner.metrics import READY_GPUS, PlanMetrics
from dynamo_planner.planning import collector
from dynamo_planner.planning.backoff import LONGEST, OF_LIFETIME, PlanBackoff, asked
from dynamo_planner.planning.collector import input_collector
from dynamo_planner.planning.plans import NotPlannable, PlannedGraph, config_map_of, read_plan
from dynamo_planner.planning.reporter import (
    ConditionWriter,
    PlanningCondition,
    PlanReporter,
    missing_inputs,
    without_numbers,
)
from dynamo_planner.planning.runner import FAULT_PAUSE, Runner, TickResult
from dynamo_planner.planning.scaling import ScaleSender

OF_SHARE = (PODS, CONFIG_MAPS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS)
READS = (DYNAMO_GRAPH_DEPLOYMENTS, *OF_SHARE)
#: Index of graphs that request planning, by the ConfigMaps that they read. Further indexes have the names of resources:
#: by the claims and claim templates that their pods name.
PLANNED_BY = "planned-by"
#: Name of the planning reconciler.
CONCERN = "plans"
#: As in release 0.1.0, so that a graph also has one owner during an upgrade: there, `planner` is the identity for
#: requests.
IDENTITY = "planner-plans"
#: Minimum seconds between two changes of a condition's message while its reason is the same: of its words, and of only
#: its numbers, which change with each sample of each graph and are also in metrics.
WORDS_INTERVAL, NUMBERS_INTERVAL = 30.0, 300.0
#: Time until the next check of a graph that lacks inputs for planning. Seconds.
RETRY_AFTER = 30.0
#: Reason of the condition of a graph whose policy fails: a bug of this program, or unexpected numbers.
FAILED = "PlanningFailed"
#: Characters of an error in a condition.
LONGEST_ERROR = 500
#: Policies that start concurrently. The largest profile takes one several seconds.
STARTS_AT_ONCE = 2
#: Policies that decide, and PlannerConfigs that are read, concurrently, without fits of time series, of which a process
#: computes only one at a time.
TICKS_AT_ONCE = 4

log = structlog.get_logger("dynamo.planner.planning")


@dataclass(frozen=True, slots=True)
class _Running:
    plan: PlannedGraph
    task: asyncio.Task[None]


class Plans(Controller):
    """Graphs that are planned."""

    def __init__(self, context: ServiceContext, name: str, metrics: PlanMetrics, listener: NatsListener | None) -> None:
        super().__init__(context, name, READS, of_share=OF_SHARE, identity=IDENTITY)
        self.cache.pack(*READS)
        collector.index(self.cache)
        self.cache.add_index(DYNAMO_GRAPH_DEPLOYMENTS, PLANNED_BY, _planned_by)
        for named in NAMED_BY:
            self.cache.add_index(DYNAMO_GRAPH_DEPLOYMENTS, named.id, partial(_claiming_by, named))
        self._metrics = metrics
        self._listener = listener
        self._condition = ConditionWriter(self.kube, now)
        self._reporter = PlanReporter(self.announcer)
        # Policies fit models to a profile when they start, and some to time series later, which takes seconds: these have
        # their own threads, so that no other tick waits for them. Namespaces take turns at all threads.
        self._starts = Offload(above=0, at_once=STARTS_AT_ONCE)
        self._fits = Offload(above=0, at_once=1)
        self._ticks = Offload(above=0, at_once=TICKS_AT_ONCE)
        #: To the platform's Prometheus; created when planning begins.
        self._connections: PrometheusConnections | None = None
        self._runners: dict[ObjectKey, _Running] = {}
        self._written: dict[str, float] = {}
        #: Plans that have ended, but of which the scaler could not be informed yet.
        self._unwithdrawn: dict[ObjectKey, PlannedGraph] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        # Capabilities of engines are optional inputs: without model-discovery they are unknown.
        engines = StateReader(context.bus, context.settings.platform.cluster_name, [WORKERS], self.cache)
        self.wire(
            {CONCERN: Reconciler(self.reconcile, lambda: self.of_each(DYNAMO_GRAPH_DEPLOYMENTS, self._planned))},
            (
                TaskRoute(
                    DYNAMO_GRAPH_DEPLOYMENTS,
                    to=lambda change: (_task(change.key),),
                    when=lambda change: _asked(change.old) != _asked(change.new),
                ),
                TaskRoute(CONFIG_MAPS, to=partial(self._asking, PLANNED_BY)),
                TaskRoute(RESOURCE_CLAIM_TEMPLATES, to=partial(self._asking, RESOURCE_CLAIM_TEMPLATES.id)),
                TaskRoute(
                    RESOURCE_CLAIMS,
                    to=self._of_claim,
                    when=lambda change: of_claim(change.old) != of_claim(change.new),
                ),
            ),
            effects={DYNAMO_GRAPH_DEPLOYMENTS: self._graph_changed, LEASES: self._lease_changed},
            background={"runners": self._own, "engines": engines.run},
        )
        self.ownership.on_loss(lambda: self._stop_where(lambda key: not self.ownership.owns(key)))
        self.ownership.before_release(self._release)

    def _of_claim(self, change: CacheChange) -> Iterator[Task]:
        """Tasks for the graphs that name the claim, or for the graph of the pod that the claim was created for."""
        namespace = change.key.namespace
        owner = objects.controller_of(change.obj)
        if owner is not None and owner["kind"] == PODS.kind:
            # Such claims exist for each pod: do not iterate over the graphs of the namespace.
            pod = self.cache.get(PODS, ObjectKey(namespace, owner["name"]))
            made_for = ObjectKey(namespace, objects.labels(pod or {}).get(labels.GRAPH_DEPLOYMENT_NAME, ""))
            graph = self.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, made_for)
            if graph is not None and config_map_of(graph):
                yield _task(made_for)
            return
        yield from self._asking(RESOURCE_CLAIMS.id, change)

    def _asking(self, index: str, change: CacheChange) -> Iterator[Task]:
        """Graphs that request planning and name the changed object. There may be thousands, so only keys are read."""
        return map(_task, self.cache.keys_by_index(DYNAMO_GRAPH_DEPLOYMENTS, index, str(change.key)))

    def _graph_changed(self, change: CacheChange) -> None:
        """Stop planning when the graph is deleted."""
        if change.gone is not None:
            self._stop(change.key)
            self._unwithdrawn.pop(change.key, None)
            self._reporter.forget(objects.uid(change.gone))

    def _lease_changed(self, change: CacheChange) -> None:
        """Stop planning if another platform serves the namespace."""
        self._stop_where(lambda key: key.namespace == change.key.namespace and self.is_held(key.namespace))

    def _planned(self, graph: KubeObject) -> Iterable[ObjectKey]:
        """The key of a graph that requests planning, is planned, or whose end of planning the scaler does not
        know yet.
        """
        key = key_of(graph)
        if config_map_of(graph) or key in self._runners or key in self._unwithdrawn:
            yield key

    async def reconcile(self, key: ObjectKey) -> Result:
        """Start, replace or stop the runner of a graph as it requests."""
        graph = self.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, key)
        if graph is None or objects.is_deleting(graph):
            self._stop(key)
            return Result()
        if not config_map_of(graph):
            await self._end(key)
            self._reporter.forget(objects.uid(graph))
            await self._condition.write(graph, None)
            return Result(RETRY_AFTER if key in self._unwithdrawn else None)
        try:
            plan = await self._plan(graph)
            self._prometheus(plan)
        except (NotPlannable, InputError) as error:
            await self._end(key)
            if self.cache.get_by_uid(DYNAMO_GRAPH_DEPLOYMENTS, key, objects.uid(graph)) is None:
                # Deleted meanwhile: nothing would forget what is reported now.
                return Result()
            reason = error.reason if isinstance(error, NotPlannable) else "InvalidPlannerConfig"
            self._reporter.refused(graph, reason, str(error))
            await self._condition.write(graph, PlanningCondition(False, reason, str(error)))
            return Result(RETRY_AFTER)
        running = self._runners.get(key)
        if running is not None and running.plan == plan and not running.task.done():
            return Result()
        await self._end(key)
        if self.ownership.owns(key) and not self.is_held(key.namespace):
            # Otherwise, the graph was given away while its plan was read or the former plan withdrawn: the runner would
            # never stop.
            self._runners[key] = _Running(plan, asyncio.create_task(self._run(plan), name=f"plan {key}"))
            self._reporter.begun(graph, plan)
        return Result()

    async def _end(self, key: ObjectKey) -> None:
        """Stop planning by a plan and withdraw its requests: the scaler may hold them for minutes."""
        running = self._runners.get(key)
        self._stop(key)
        plan = running.plan if running is not None else self._unwithdrawn.get(key)
        if plan is None:
            return
        self._unwithdrawn[key] = plan
        if await self._scale_sender(plan).withdraw():
            self._unwithdrawn.pop(key, None)

    def _scale_sender(self, plan: PlannedGraph) -> ScaleSender:
        sender = CommandSender(self.context.bus, self.context.settings.platform.cluster_name)
        return ScaleSender(sender, plan, now().isoformat(), lambda: self.ownership.owns(plan.graph))

    async def _run(self, plan: PlannedGraph) -> None:
        """Plan until cancelled. If this fails, it begins again after a pause."""
        try:
            await self._run_plan(plan)
        except Exception as error:
            log.exception("planning of a graph ended unexpectedly", graph=str(plan.graph))
            await self._report_failure(plan, error)
            # Afterwards, because a reconcile leaves a runner alone that has not ended yet.
            self.enqueue(_task(plan.graph), RETRY_AFTER)

    async def _plan(self, graph: KubeObject) -> PlannedGraph:
        namespace, name = graph["metadata"]["namespace"], config_map_of(graph)
        config_map = await self._config_map(ObjectKey(namespace, name))
        profile = await self._config_map(ObjectKey(namespace, profile_data_name(name)))

        # The cache is changed only on this thread.
        named = (each for each in graph["spec"].get("components") or () if each.get("name"))
        counted = {each["name"]: self._gpus(key_of(graph), each) for each in named}
        running = self._runners.get(key_of(graph))
        before = running.plan if running is not None and running.plan.uid == objects.uid(graph) else None
        reading = partial(read_plan, graph, config_map, profile, counted, before)
        return await self._ticks.run(1, reading, namespace)

    def _gpus(self, graph: ObjectKey, component: KubeObject) -> ReplicaGpus:
        claims = KnownClaims(
            lambda name: self.cache.get(RESOURCE_CLAIM_TEMPLATES, ObjectKey(graph.namespace, name)),
            lambda name: self.cache.get(RESOURCE_CLAIMS, ObjectKey(graph.namespace, name)),
            lambda: self.cache.by_index(PODS, collector.OF_COMPONENT, collector.index_value(graph, component["name"])),
        )
        return of_replica(component, claims)

    async def _config_map(self, key: ObjectKey) -> KubeObject | None:
        """From STATE or the API server: ConfigMaps of users may lack the label that brings them to STATE."""
        return self.cache.get(CONFIG_MAPS, key) or await get_if_present(self.kube, CONFIG_MAPS, key)

    def _prometheus(self, plan: PlannedGraph) -> Any:
        settings = self.context.settings
        return prometheus_options(
            plan.config,
            settings.platform.planner.prometheus,
            settings.infrastructure.prometheus_endpoint,
            platform_hosts(settings),
        )

    async def _compute(self, namespace: str, tick: Tick, work: Callable[[], Effects]) -> Effects:
        """Runs a tick of a policy in a thread."""
        threads = self._fits if tick.fits_series else self._ticks
        return await threads.run(1, work, namespace)

    async def _run_plan(self, plan: PlannedGraph) -> None:
        clock, scale = self.context.clock, self._scale_sender(plan)

        def make() -> Policy:
            return make_policy(plan.config, policy=plan.config.policy.value, profile=plan.profile, warmup=plan.warmup)

        if self._connections is None:
            self._connections = PrometheusConnections()
        inputs = input_collector(
            plan, self.cache, self._prometheus(plan), self._listener, clock, connections=self._connections
        )
        async with inputs as gather:
            await Runner(
                plan,
                make=lambda: self._starts.run(1, make, plan.graph.namespace),
                observe=gather.observe,
                act=scale,
                withdraw=scale.withdraw,
                compute=partial(self._compute, plan.graph.namespace),
                report=partial(self._report, plan),
                failed=partial(self._report_failure, plan),
                clock=clock,
                backoff=PlanBackoff(
                    clock, min(LONGEST, OF_LIFETIME * self.context.settings.platform.scaler.intent_lifetime)
                ),
            ).run()

    async def _report(self, plan: PlannedGraph, ticked: TickResult) -> None:
        if (graph := self._graph(plan)) is None:
            return
        outcome = self._reporter.tick(graph, plan, ticked, now())
        missing = missing_inputs(plan, ticked)
        self._metrics.tick((plan.graph.namespace, plan.graph.name), _figures(plan, ticked), missing, outcome.reason)
        present = objects.condition(graph, PLANNING) or {}
        concluded = str(outcome.status), outcome.reason, graph["metadata"].get("generation", 0)
        same = concluded == tuple(present.get(each) for each in ("status", "reason", "observedGeneration"))
        if same and not self._is_due(plan, present["message"], outcome.message):
            return
        await self._write(plan, graph, outcome)

    def _is_due(self, plan: PlannedGraph, before: str, message: str) -> bool:
        """Whether a new message of the same condition must be written."""
        interval = NUMBERS_INTERVAL if without_numbers(before) == without_numbers(message) else WORDS_INTERVAL
        return before != message and self.context.clock() - self._written.get(plan.uid, float("-inf")) >= interval

    async def _report_failure(self, plan: PlannedGraph, error: Exception) -> None:
        if (graph := self._graph(plan)) is None:
            return
        why = f"{type(error).__name__}: {error}"[:LONGEST_ERROR]
        message = f"planning fails, and replicas do not change: {why}; the planner retries every {FAULT_PAUSE:.0f} s"
        self._reporter.refused(graph, FAILED, message)
        self._metrics.failed((plan.graph.namespace, plan.graph.name), FAILED)
        await self._write(plan, graph, PlanningCondition(False, FAILED, message))

    def _graph(self, plan: PlannedGraph) -> KubeObject | None:
        """The graph of a plan, if it still exists."""
        return self.cache.get_by_uid(DYNAMO_GRAPH_DEPLOYMENTS, plan.graph, plan.uid)

    async def _write(self, plan: PlannedGraph, graph: KubeObject, condition: PlanningCondition) -> None:
        try:
            await self._condition.write(graph, condition)
        except Exception as error:
            log.info("cannot write the condition of a planned graph", graph=str(plan.graph), error=str(error))
        else:
            self._written[plan.uid] = self.context.clock()

    def _stop(self, key: ObjectKey) -> None:
        running = self._runners.pop(key, None)
        if running is None:
            return
        running.task.cancel()
        self._stopping.add(running.task)
        running.task.add_done_callback(self._stopping.discard)
        self._metrics.forget((key.namespace, key.name))
        self._reporter.forget(running.plan.uid)
        self._written.pop(running.plan.uid, None)

    def _stop_where(self, concerns: Callable[[ObjectKey], bool]) -> None:
        for key in [key for key in self._runners if concerns(key)]:
            self._stop(key)
        # The next planner of these graphs withdraws earlier requests.
        for key in [key for key in self._unwithdrawn if concerns(key)]:
            del self._unwithdrawn[key]

    async def _release(self, gone: Callable[[ObjectKey], bool]) -> None:
        """Stop planning before another replica begins it."""
        self._stop_where(gone)
        await asyncio.gather(*self._stopping, return_exceptions=True)

    async def _own(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await self._release(lambda _: True)
            if self._connections is not None:
                await self._connections.close()


def _task(graph: ObjectKey) -> Task:
    return Task(CONCERN, graph)


def _planned_by(graph: KubeObject) -> list[str]:
    name, namespace = config_map_of(graph), graph["metadata"]["namespace"]
    return [f"{namespace}/{each}" for each in (name, profile_data_name(name))] if name else []


def _claiming_by(resource: Resource, graph: KubeObject) -> list[str]:
    return keys_named(resource, graph) if config_map_of(graph) else []


def _asked(graph: KubeObject | None) -> tuple[Any, ...]:
    """The parts of a graph that affect its planning."""
    if graph is None:
        return ()
    metadata = graph["metadata"]
    return metadata["uid"], metadata.get("generation"), config_map_of(graph), objects.is_deleting(graph)


def _figures(plan: PlannedGraph, ticked: TickResult) -> dict[str, float]:
    observation, effects = ticked.collected.observation, ticked.effects
    figures = {f"ready.{pool.value}": float(counts.ready) for pool, counts in observation.workers.items()}
    figures |= {"target.ttft_ms": plan.config.ttft_ms, "target.itl_ms": plan.config.itl_ms}
    gpus = [(counts.ready, plan.gpus.get(pool)) for pool, counts in observation.workers.items()]
    if all(of_each is not None for _, of_each in gpus):
        figures[READY_GPUS] = float(sum(ready * (of_each or 0) for ready, of_each in gpus))
    desired: dict[Pool, int | None] = {}
    if plan.config.policy is PlanningPolicy.ADAPTIVE:
        # Pools that it leaves alone have what it desires; most ticks of `reference` are not about replicas.
        desired |= {pool: asked(observation, pool) for pool in observation.workers}
    if effects.decision is not None:
        desired |= effects.decision.replicas
    figures |= {f"desired.{pool.value}": float(count) for pool, count in desired.items() if count is not None}
    if (traffic := observation.traffic) is not None:
        figures |= {
            "observed.requests_per_second": traffic.requests / traffic.duration if traffic.duration else 0.0,
            "observed.isl": traffic.isl,
            "observed.osl": traffic.osl,
        }
        figures |= {} if traffic.ttft is None else {"observed.ttft_ms": traffic.ttft}
        figures |= {} if traffic.itl is None else {"observed.itl_ms": traffic.itl}
    return figures | {f"predicted.{name}": value for name, value in effects.explanation.predictions.items()}
