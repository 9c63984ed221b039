"""Compares several ways to plan the same traffic: policies, and constant splits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from dynamo_shared.api.contracts.planner import PlannerConfig

from dynamo_planner.core.decision import Effects, Policy, Tick
from dynamo_planner.core.observation import Missing, Observation, Pool
from dynamo_planner.core.policies import PolicyName, make_policy
from dynamo_planner.core.profile import Profile
from dynamo_planner.core.warmup import Interval
from dynamo_planner.replay.graph import Graph
from dynamo_planner.replay.outcome import ReplayOutcome
from dynamo_planner.replay.simulator import simulate
from dynamo_planner.replay.traces import TraceRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayInput:
    """The input of a replay: traffic and graph."""

    requests: Sequence[TraceRequest]
    graph: Graph
    profile: Profile
    """the latency of the simulated engines, and the initial data of policies"""
    until: float | None = None
    """seconds to plan; None: to the last request"""

    def policy(self, name: PolicyName, config: PlannerConfig, warmup: Sequence[Interval] = ()) -> ReplayOutcome:
        """The outcome with a policy."""
        made: Policy = make_policy(config, policy=name, profile=self.profile, warmup=warmup)
        if name == "reference":
            made = ReferenceTraffic(made)
        return self.planned(made, name)

    def planned(self, policy: Policy | None, name: str) -> ReplayOutcome:
        """The outcome with any object that implements `Policy`; with None, nothing is planned."""
        return simulate(self.requests, self.graph, self.profile, policy, name=name, until=self.until)

    def static(self, replicas: dict[Pool, int]) -> ReplayOutcome:
        """The outcome with constant replicas, all ready from the beginning."""
        return replace(self, graph=replace(self.graph, replicas=replicas)).planned(None, split_name(replicas))

    def best_static(self, most_gpus: int) -> list[ReplayOutcome]:
        """All splits within a budget of GPUs, best first: most requests within targets, then fewest GPU-hours."""
        pools = list(self.graph.replicas)
        counts = [range(1, most_gpus // self.graph.gpus[pool] + 1) for pool in pools]
        splits = (dict(zip(pools, split, strict=True)) for split in product(*counts))
        fitting = [s for s in splits if sum(self.graph.gpus[pool] * n for pool, n in s.items()) <= most_gpus]
        outcomes = [self.static(split) for split in fitting]
        return sorted(outcomes, key=lambda outcome: (-round(outcome.attainment(), 3), outcome.gpu_hours))


def split_name(replicas: dict[Pool, int]) -> str:
    """3P2D, or 4 for one aggregated pool."""
    if Pool.PREFILL not in replicas:
        return f"static {replicas[Pool.DECODE]}"
    return f"static {replicas[Pool.PREFILL]}P{replicas[Pool.DECODE]}D"


class ReferenceTraffic:
    """Traffic as Dynamo's planner receives it: an interval in which no request ended has no averages (0/0), so it is
    dropped completely (planner.md, sections a.3 and d). This project's service reports no demand as a number.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def first_tick(self, now: float) -> Tick:
        """The policy's first tick."""
        return self._policy.first_tick(now)

    def on_tick(self, tick: Tick, observation: Observation) -> Effects:
        """The policy's answer to what it would observe."""
        traffic = observation.traffic
        if traffic is not None and (not traffic.requests or traffic.ttft is None or traffic.itl is None):
            observation = replace(observation, traffic=None, missing={"traffic": Missing.NOT_A_NUMBER})
        return self._policy.on_tick(tick, observation)
