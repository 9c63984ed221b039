"""Collects a policy's inputs at a tick, from STATE, Prometheus and the Dynamo runtime, and names the missing ones."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from dynamo_shared.aio import Offload
from dynamo_shared.api.contracts.planner import Mode, PlanningPolicy
from dynamo_shared.api.dynamo_namespace import dynamo_namespace, worker_namespace
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, PODS, ObjectKey
from dynamo_shared.bus.nats import NatsListener
from dynamo_shared.state.cache import ObjectCache
from dynamo_shared.wire import discovered
from dynamo_shared.wire.discovered import WorkerData, worker_of

from dynamo_planner.core.decision import Tick
from dynamo_planner.core.observation import (
    EngineCapabilities,
    ForwardPass,
    Missing,
    Observation,
    PastTraffic,
    Pool,
    PoolCounts,
    Traffic,
)
from dynamo_planner.inputs.engines import engines_of, is_of_pool
from dynamo_planner.inputs.forward_passes import ForwardPasses
from dynamo_planner.inputs.outcome import InputUnavailable
from dynamo_planner.inputs.prometheus.client import PrometheusClient, PrometheusConnections
from dynamo_planner.inputs.prometheus.options import PrometheusOptions
from dynamo_planner.inputs.prometheus.traffic import TrafficReader
from dynamo_planner.inputs.runtime_feed import RuntimeFeed, watch_engines
from dynamo_planner.inputs.startup import StartupTimes
from dynamo_planner.inputs.workers import pool_counts
from dynamo_planner.planning.plans import PlannedGraph

T = TypeVar("T")
TRAFFIC, WORKERS, FORWARD_PASSES = "traffic", "workers", "forward_passes"
#: Generations of workers whose engines are subscribed to: each has a Dynamo namespace, and an updating graph has two.
MOST_GENERATIONS = 8
#: Index of pods: `<namespace>/<graph>/<component>`.
OF_COMPONENT = "of-planned-component"
#: Index of discovered workers: the same key as for pods, or if the worker's pod does not state it, `<namespace>:<Dynamo
#: namespace>`, whose first part is empty if no pod is known.
OF_GRAPH = "of-planned-graph"

#: Counts the pods of graphs with hundreds in a thread: ten thousand take a third of a second.
_COUNTS = Offload(above=250, at_once=1)

_PLACE = ("namespace", "graphDeployment", "graphComponent")

_NO_RUNTIME_NATS = InputUnavailable(
    why=Missing.UNREACHABLE,
    message="the address of NATS of the Dynamo runtime is unknown: set platform.planner.runtimeNats.servers or "
    "infrastructure.natsAddress",
)


@dataclass(frozen=True, slots=True)
class CollectedInputs:
    """An observation, and for users, why inputs are missing."""

    observation: Observation
    troubles: dict[str, str]


def index(cache: ObjectCache) -> None:
    """Index pods and discovered workers by their component."""
    cache.add_index(PODS, OF_COMPONENT, _component_of)
    cache.add_index(discovered.WORKERS, OF_GRAPH, _place_of)


async def pods_of(cache: ObjectCache, graph: ObjectKey, component: str) -> list[KubeObject]:
    """Pods of a component, in any phase."""
    return await cache.read_by_index(PODS, OF_COMPONENT, index_value(graph, component))


def index_value(graph: ObjectKey, component: str) -> str:
    """The value in `OF_COMPONENT` of the pods of a component."""
    return f"{graph.namespace}/{graph.name}/{component}"


def _component_of(pod: KubeObject) -> list[str]:
    pod_labels = pod["metadata"].get("labels") or {}
    graph, component = pod_labels.get(labels.GRAPH_DEPLOYMENT_NAME), pod_labels.get(labels.COMPONENT)
    return [f"{pod['metadata']['namespace']}/{graph}/{component}"] if graph and component else []


class InputCollector:
    """Collects what the cluster, Prometheus and the runtime report on one graph. `input_collector` owns its connections."""

    def __init__(
        self,
        plan: PlannedGraph,
        cache: ObjectCache,
        *,
        traffic: TrafficReader,
        listener: NatsListener | None,
        clock: Callable[[], float],
        stack: AsyncExitStack,
    ) -> None:
        self._plan, self._cache, self._traffic = plan, cache, traffic
        self._listener, self._stack = listener, stack
        self._starts = {pool: StartupTimes() for pool in plan.components}
        self._heard = ForwardPasses(plan.config.mode, clock, pools=self._roles())
        self._feed: RuntimeFeed | None = None
        self._listening: tuple[str, ...] = ()
        self._lacking: dict[str, InputUnavailable] = {}
        """inputs that were missing when they were last requested"""

    async def listen(self) -> None:
        """Listen to the engines before the first tick, which otherwise finds them silent."""
        pods = await self._pods()
        await self._passes(await self._counted(pods, lambda: self._namespaces(pods)))

    async def observe(self, tick: Tick, now: float) -> CollectedInputs:
        """The current observation; never raises for missing inputs."""
        pods = await self._pods()
        graph = self._cache.get(DYNAMO_GRAPH_DEPLOYMENTS, self._plan.graph)
        counted, namespaces, startup = await self._counted(
            pods, lambda: (self._workers(graph, pods), self._namespaces(pods), self._startup(pods))
        )
        workers = self._known(WORKERS, counted) or {}
        traffic: Traffic | None = None
        past: tuple[PastTraffic, ...] = ()
        if tick.traffic_window is not None:
            traffic = self._known(TRAFFIC, await self._traffic.read(tick.traffic_window))
        if traffic is not None and workers and tick.past_window is not None:
            past = await self._traffic.past(tick.past_window, traffic.duration)
        passes: tuple[ForwardPass, ...] | None = None
        if tick.need_forward_passes:
            passes = self._known(FORWARD_PASSES, await self._passes(namespaces))
        observation = Observation(
            now=now,
            traffic=traffic,
            past=past,
            workers=workers,
            forward_passes=passes or (),
            capabilities={pool: self._capabilities(pool, namespaces) for pool in pods},
            startup_seconds=startup,
            missing={name: each.why for name, each in self._lacking.items()},
        )
        return CollectedInputs(observation, {name: each.message for name, each in self._lacking.items()})

    def _known(self, name: str, read: T | InputUnavailable) -> T | None:
        """What was read; None if it is missing, which is reported until the input is requested again."""
        if isinstance(read, InputUnavailable):
            self._lacking[name] = read
            return None
        self._lacking.pop(name, None)
        return read

    async def _pods(self) -> dict[Pool, list[KubeObject]]:
        return {
            pool: await pods_of(self._cache, self._plan.graph, component)
            for pool, component in self._plan.components.items()
        }

    async def _counted(self, pods: dict[Pool, list[KubeObject]], count: Callable[[], T]) -> T:
        # Only the pods are read in the thread: the cache changes meanwhile.
        return await _COUNTS.run(sum(map(len, pods.values())), count, self._plan.graph.namespace)

    def _workers(
        self, graph: KubeObject | None, pods: dict[Pool, list[KubeObject]]
    ) -> dict[Pool, PoolCounts] | InputUnavailable:
        components = {each["name"]: each for each in ((graph or {}).get("spec") or {}).get("components") or ()}
        counts: dict[Pool, PoolCounts] = {}
        for pool, name in self._plan.components.items():
            if graph is None or name not in components:
                return InputUnavailable(why=Missing.NO_WORKERS, message=f"the graph no longer has a component {name}")
            pool_count = pool_counts(graph, components[name], pods[pool])
            if isinstance(pool_count, InputUnavailable):
                return pool_count
            counts[pool] = pool_count
        return counts

    def _startup(self, pods: dict[Pool, list[KubeObject]]) -> dict[Pool, float]:
        for pool, times in self._starts.items():
            times.learn(pods[pool])
        return {pool: times.seconds for pool, times in self._starts.items() if times.seconds is not None}

    def _capabilities(self, pool: Pool, namespaces: tuple[str, ...]) -> EngineCapabilities:
        plan = self._plan
        workers = [
            worker
            for worker in _workers_of(self._cache, plan.graph, plan.components[pool], namespaces)
            if is_of_pool(
                worker,
                graph=plan.graph,
                component=plan.components[pool],
                pool=pool,
                mode=plan.config.mode,
                namespaces=namespaces,
            )
        ]
        return engines_of(workers, plan.config.engine_gpus(pool) or plan.gpus.get(pool), plan.watts.get(pool))

    def _namespaces(self, pods: dict[Pool, list[KubeObject]]) -> tuple[str, ...]:
        """Dynamo namespaces of the graph: its own, and those of the worker generations with the most pods."""
        base = self._plan.config.namespace or dynamo_namespace(self._plan.graph.namespace, self._plan.graph.name)
        known = (pod["metadata"].get("labels") or {} for members in pods.values() for pod in members)
        generations = Counter(each[labels.WORKER_HASH] for each in known if each.get(labels.WORKER_HASH))
        largest = [generation for generation, _ in generations.most_common(MOST_GENERATIONS)]
        return tuple(sorted({worker_namespace(base, each) for each in ("", *largest)}))

    async def _passes(self, namespaces: tuple[str, ...]) -> tuple[ForwardPass, ...] | InputUnavailable:
        if self._listener is None:
            return _NO_RUNTIME_NATS
        if self._feed is None or namespaces != self._listening:
            # Another generation of workers reports in its own namespace.
            await self._stack.aclose()
            feed = watch_engines(self._listener, namespaces, self._heard)
            self._feed = await self._stack.enter_async_context(feed)
            self._listening = namespaces
        return self._feed.read()

    def _roles(self) -> dict[str, Pool]:
        """Pools by the runtime's component names, if the graph chooses them: the graph's names in lower case."""
        if self._plan.config.mode is Mode.AGG:
            return {}
        return {name.lower(): pool for pool, name in self._plan.components.items()}


def _workers_of(
    cache: ObjectCache, graph: ObjectKey, component: str, namespaces: Iterable[str]
) -> Iterator[WorkerData]:
    """Workers of a component, and those that may belong to it. The many other workers are not read."""
    unplaced = (f"{namespace}:{each}" for namespace in (graph.namespace, "") for each in namespaces)
    for place in (f"{graph.namespace}/{graph.name}/{component}", *unplaced):
        for obj in cache.by_index(discovered.WORKERS, OF_GRAPH, place):
            with suppress(ValueError):
                yield worker_of(obj)


def _place_of(obj: KubeObject) -> list[str]:
    worker = obj.get("spec") or {}
    namespace, graph, component = (str(worker.get(name) or "") for name in _PLACE)
    return [f"{namespace}/{graph}/{component}" if component else f"{namespace}:{worker.get('dynamoNamespace') or ''}"]


@asynccontextmanager
async def input_collector(
    plan: PlannedGraph,
    cache: ObjectCache,
    prometheus: PrometheusOptions,
    listener: NatsListener | None,
    clock: Callable[[], float],
    *,
    connections: PrometheusConnections | None = None,
) -> AsyncIterator[InputCollector]:
    """A collector with its connections; `connections`: shared connections to the platform's Prometheus."""
    namespace = plan.config.namespace or dynamo_namespace(plan.graph.namespace, plan.graph.name)
    async with (
        PrometheusClient.open(prometheus, connections, lane=plan.graph.namespace) as client,
        AsyncExitStack() as stack,
    ):
        reader = TrafficReader(
            client,
            source=plan.config.throughput_metrics_source,
            namespace=namespace,
            kubernetes_namespace=plan.graph.namespace,
            model=plan.config.model_name,
            disaggregated=plan.config.mode is not Mode.AGG,
        )
        collector = InputCollector(plan, cache, traffic=reader, listener=listener, clock=clock, stack=stack)
        if listener is not None and (plan.config.policy is PlanningPolicy.ADAPTIVE or plan.config.load_scaling):
            await collector.listen()
        yield collector
