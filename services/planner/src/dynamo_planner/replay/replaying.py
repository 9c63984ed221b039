"""Several ways to plan the same traffic, side by side: policies, and splits that never change."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from dynamo_shared.api.contracts.planner import PlannerConfig

from dynamo_planner.core.decision import Effects, Policy, Tick
from dynamo_planner.core.observing import Missing, Observation, Pool
from dynamo_planner.core.policies import PolicyName, make_policy
from dynamo_planner.core.profile import Profile
from dynamo_planner.core.warmup import Interval
from dynamo_planner.replay.graph import Graph
from dynamo_planner.replay.outcome import ReplayOutcome
from dynamo_planner.replay.simulator import simulate
from dynamo_planner.replay.traces import TraceRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayInput:
    """What is replayed: traffic, and the graph that it meets."""

    requests: Sequence[TraceRequest]
    graph: Graph
    profile: Profile
    """what engines of the simulation take, and what policies are given to begin with"""
    until: float | None = None
    """seconds that are planned for; None: to the last request"""

    def policy(self, name: PolicyName, config: PlannerConfig, warmup: Sequence[Interval] = ()) -> ReplayOutcome:
        """The traffic, planned by a policy."""
        made: Policy = make_policy(config, policy=name, profile=self.profile, warmup=warmup)
        if name == "reference":
            made = AsReferenceSees(made)
        return self.planned(made, name)

    def planned(self, policy: Policy | None, name: str) -> ReplayOutcome:
        """The traffic, planned by whatever answers as a policy does; None plans nothing."""
        return simulate(self.requests, self.graph, self.profile, policy, name=name, until=self.until)

    def static(self, replicas: dict[Pool, int]) -> ReplayOutcome:
        """The traffic with replicas that never change, all there from the beginning."""
        return replace(self, graph=replace(self.graph, replicas=replicas)).planned(None, split_name(replicas))

    def best_static(self, most_gpus: int) -> list[ReplayOutcome]:
        """All splits within a budget of GPUs, the best first: most requests within targets, then fewest GPU-hours."""
        pools = list(self.graph.replicas)
        counts = [range(1, most_gpus // self.graph.gpus[pool] + 1) for pool in pools]
        splits = (dict(zip(pools, split, strict=True)) for split in product(*counts))
        fitting = [s for s in splits if sum(self.graph.gpus[pool] * n for pool, n in s.items()) <= most_gpus]
        outcomes = [self.static(split) for split in fitting]
        return sorted(outcomes, key=lambda outcome: (-round(outcome.attainment(), 3), outcome.gpu_hours))


def split_name(replicas: dict[Pool, int]) -> str:
    """3P2D, or 4 of one pool that does both."""
    if Pool.PREFILL not in replicas:
        return f"static {replicas[Pool.DECODE]}"
    return f"static {replicas[Pool.PREFILL]}P{replicas[Pool.DECODE]}D"


class AsReferenceSees:
    """Traffic as Dynamo's planner gets it: an interval in which no request ended has no averages (0/0), so it is dropped
    whole (planner.md, sections a.3 and d); the service of this project reports no demand as a number instead.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def first_tick(self, now: float) -> Tick:
        """As the policy wants it."""
        return self._policy.first_tick(now)

    def on_tick(self, tick: Tick, observation: Observation) -> Effects:
        """What the policy answers to what it would observe."""
        traffic = observation.traffic
        if traffic is not None and (not traffic.requests or traffic.ttft is None or traffic.itl is None):
            observation = replace(observation, traffic=None, missing={"traffic": Missing.NOT_A_NUMBER})
        return self._policy.on_tick(tick, observation)
