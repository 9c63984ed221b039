"""Simulates a graph under a trace, planned by a policy: events in order of time, without randomness, so a run is
repeatable.

Router, engines and replicas are simulated; a policy has the same inputs and outputs as in the service.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf

from dynamo_planner.core.decision import Policy, Tick
from dynamo_planner.core.observation import ForwardPass, Missing, Observation, Pool, Traffic
from dynamo_planner.core.profile import Profile
from dynamo_planner.core.scraped_traffic import ScrapedTraffic
from dynamo_planner.replay.engine import Job, SimulatedEngine
from dynamo_planner.replay.graph import Graph
from dynamo_planner.replay.history import History
from dynamo_planner.replay.measured_engine import MeasuredEngine
from dynamo_planner.replay.outcome import Action, GraphSample, ReplayOutcome
from dynamo_planner.replay.pool import ReplicaPool
from dynamo_planner.replay.traces import TraceRequest

SAMPLE_SECONDS = 5.0
LONGEST_DRAIN = 600.0
"""Seconds after the trace in which requests may still end; unfinished requests then count as missed."""


def simulate(
    requests: Sequence[TraceRequest],
    graph: Graph,
    profile: Profile,
    policy: Policy | None,
    *,
    name: str,
    until: float | None = None,
) -> ReplayOutcome:
    """The outcome of the requests, which are in order of time, with engines as fast as `profile` measured.

    Planning continues to `until` (seconds; None: to the last request). Without a policy, the replicas stay unchanged.
    """
    return _Run(requests, graph, profile, policy, name=name, until=until).outcome()


@dataclass(frozen=True, slots=True)
class _PoolEvents:
    """The events of the engines of one pool."""

    done: Callable[[Job, float], None]
    history: History

    def first_token(self, job: Job, now: float) -> None:
        self.history.first_token(job, now)

    def tokens(self, count: int, each: float, now: float) -> None:
        self.history.tokens(count, each, now)


class _Run:
    def __init__(
        self,
        requests: Sequence[TraceRequest],
        graph: Graph,
        profile: Profile,
        policy: Policy | None,
        *,
        name: str,
        until: float | None,
    ) -> None:
        self._requests, self._graph, self._policy, self._name = requests, graph, policy, name
        self._truth = MeasuredEngine(profile)
        self._now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = 0
        self._jobs: list[Job] = []
        self._open = 0
        self._history = History(hits=graph.reports_hits)
        self._scraped = ScrapedTraffic()
        self._waiting: dict[Pool, deque[Job]] = {pool: deque() for pool in graph.replicas}
        self._end = max(until or 0.0, requests[-1].at if requests else 0.0)
        self._samples: list[GraphSample] = []
        self._actions: list[Action] = []
        self._capabilities = graph.capabilities()
        self._pools = {pool: self._pool(pool) for pool in graph.replicas}

    def _pool(self, pool: Pool) -> ReplicaPool:
        graph = self._graph
        prompts_only = graph.disaggregated and pool is Pool.PREFILL

        def make(number: int) -> SimulatedEngine:
            return SimulatedEngine(
                f"{pool.value}-{number}",
                pool,
                self._truth,
                self._schedule,
                _PoolEvents(self._prefilled if prompts_only else self._finished, self._history),
                prompts_only=prompts_only,
                chunk=graph.max_num_batched_tokens,
                max_num_seqs=graph.max_num_seqs,
                max_kv_tokens=graph.max_kv_tokens,
                one_after_another=graph.one_after_another,
            )

        return ReplicaPool(
            graph.gpus[pool],
            graph.startup,
            make,
            self._schedule,
            lambda now: self._flush(pool, now),
            self._free_gpus,
        )

    def outcome(self) -> ReplayOutcome:
        for pool, count in self._graph.replicas.items():
            self._pools[pool].begin(count)
        if self._policy is not None:
            self._ask_at(self._policy.first_tick(0.0))
        self._schedule(0.0, self._sample)
        if self._requests:
            self._schedule(self._requests[0].at, lambda: self._arrive(0))
        while self._events:
            at, _, event = heappop(self._events)
            if at > self._end + LONGEST_DRAIN or (at > self._end and not self._open):
                break
            self._now = at
            event()
        return ReplayOutcome(
            name=self._name,
            graph=self._graph,
            jobs=self._jobs,
            seconds=self._end,
            gpu_seconds=sum(pool.gpu_seconds(self._end) for pool in self._pools.values()),
            actions=self._actions,
            samples=self._samples,
        )

    def _schedule(self, at: float, event: Callable[[], None]) -> None:
        self._sequence += 1
        heappush(self._events, (at, self._sequence, event))

    # Requests.

    def _arrive(self, index: int) -> None:
        job = Job(self._requests[index])
        self._jobs.append(job)
        self._open += 1
        self._history.came(self._now)
        self._route(job, Pool.PREFILL if self._graph.disaggregated else Pool.DECODE)
        if index + 1 < len(self._requests):
            self._schedule(self._requests[index + 1].at, lambda: self._arrive(index + 1))

    def _route(self, job: Job, pool: Pool) -> None:
        """Routes to the engine with the least work for the job; prompts go to engines that have cached much of them."""
        engines = self._pools[pool].serving()
        if not engines:
            self._waiting[pool].append(job)
            return
        if pool is Pool.DECODE and self._graph.disaggregated:
            min(engines, key=lambda engine: engine.kv_tokens).take_sequence(job, self._now)
            return
        # Separate from the cache look-up, because most traces have no cached blocks.
        if job.request.blocks:
            chosen = min(engines, key=lambda e: e.prompt_tokens - e.cached_tokens(job.request) + e.kv_tokens)
        else:
            chosen = min(engines, key=lambda e: e.prompt_tokens + e.kv_tokens)
        chosen.take_prompt(job, self._now)
        self._history.routed(job, self._now)

    def _prefilled(self, job: Job, now: float) -> None:
        self._schedule(now + self._graph.transfer * job.request.isl, lambda: self._route(job, Pool.DECODE))
        self._pools[Pool.PREFILL].reap(now)

    def _finished(self, job: Job, now: float) -> None:
        self._open -= 1
        self._history.ended(job, now)
        self._pools[Pool.DECODE].reap(now)

    def _flush(self, pool: Pool, now: float) -> None:
        self._now = now
        waiting, self._waiting[pool] = self._waiting[pool], deque()
        for job in waiting:
            self._route(job, pool)

    # Replicas.

    def _free_gpus(self) -> float:
        most = self._graph.cluster_gpus
        return inf if most is None else most - sum(pool.gpus_taken() for pool in self._pools.values())

    def _ask_at(self, tick: Tick) -> None:
        at = max(tick.at, self._now)
        if at <= self._end:
            self._schedule(at, lambda: self._ask(tick))

    def _ask(self, tick: Tick) -> None:
        assert self._policy is not None
        traffic: Traffic | Missing | None = None
        if tick.traffic_window is not None:
            window = self._scraped.window(tick.traffic_window)
            traffic = self._scraped.of(self._history.scraped(self._now, window))
        effects = self._policy.on_tick(
            tick,
            Observation(
                now=self._now,
                traffic=traffic if isinstance(traffic, Traffic) else None,
                missing={"traffic": traffic} if isinstance(traffic, Missing) else {},
                workers={pool: replicas.counts() for pool, replicas in self._pools.items()},
                forward_passes=tuple(self._forward_passes()) if tick.need_forward_passes else (),
                capabilities=self._capabilities,
                startup_seconds=dict.fromkeys(self._pools, self._graph.startup),
            ),
        )
        if effects.decision is not None:
            desired = {p: n for p, n in effects.decision.replicas.items() if p in self._pools}
            self._scale(desired, effects.decision.reason, effects.explanation.message)
        self._ask_at(effects.next_tick)

    def _scale(self, desired: dict[Pool, int], reason: str, message: str) -> None:
        before = {pool: replicas.target for pool, replicas in self._pools.items()}
        # Shrinking pools first: they free room for the growing ones.
        for pool, count in sorted(desired.items(), key=lambda item: item[1] - before[item[0]]):
            if self._pools[pool].scale(max(0, count), self._now):
                self._actions.append(Action(self._now, pool, before[pool], count, reason, message))
        for replicas in self._pools.values():
            replicas.place(self._now)

    def _forward_passes(self) -> Iterable[ForwardPass]:
        for replicas in self._pools.values():
            for engine in replicas.reporting(self._now):
                yield engine.forward_pass(self._now)

    def _sample(self) -> None:
        arrived = self._history.arrived(self._now - SAMPLE_SECONDS, self._now)
        self._samples.append(
            GraphSample(
                at=self._now,
                rate=arrived / SAMPLE_SECONDS,
                ready={pool: replicas.counts().ready for pool, replicas in self._pools.items()},
                target={pool: replicas.target for pool, replicas in self._pools.items()},
                gpus=sum(replicas.gpus_taken() for replicas in self._pools.values()),
            )
        )
        if self._now + SAMPLE_SECONDS <= self._end:
            self._schedule(self._now + SAMPLE_SECONDS, self._sample)
