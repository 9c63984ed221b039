"""A policy like a HorizontalPodAutoscaler on concurrency: what most clusters use without a planner.

Each pool follows its mean concurrency (requests in it) by the HPA's own rule: desired = ceil(replicas x observed /
target); within a tolerance of a tenth nothing changes, and a pool shrinks to the maximum that was desired within five
minutes. The two HPAs are independent; their common GPUs are limited as for the other policies. Targets are the
concurrency that one engine sustains within the latency target at 70 % load, which an operator determines by a load
test.
"""

from collections import deque
from collections.abc import Mapping
from math import ceil

from dynamo_planner.core.decision import Decision, Effects, Tick
from dynamo_planner.core.observation import Observation, Pool, Traffic

EVERY = 15.0
WINDOW = 30.0
"""Seconds between two syncs, and the averaging window of the metric."""
TOLERANCE = 0.1
STABILIZATION = 300.0
"""Seconds: the defaults of Kubernetes."""


class ConcurrencyHpa:
    """One HPA for each pool."""

    def __init__(self, targets: Mapping[Pool, float], most_gpus: int) -> None:
        self._targets, self._most = targets, most_gpus
        self._desired: dict[Pool, deque[tuple[float, int]]] = {pool: deque() for pool in targets}

    def first_tick(self, now: float) -> Tick:
        """One sync, now."""
        return Tick(at=now + EVERY, traffic_window=WINDOW)

    def on_tick(self, tick: Tick, observation: Observation) -> Effects:
        """Scale by the metric."""
        next_tick = Tick(at=tick.at + EVERY, traffic_window=WINDOW)
        if observation.traffic is None:
            return Effects(next_tick=next_tick)
        replicas = {}
        for pool, target in self._targets.items():
            counts = observation.workers[pool]
            asked = counts.expected or 1
            ratio = concurrency(observation.traffic, pool) / max(counts.ready, 1) / target
            desired = asked if abs(ratio - 1) <= TOLERANCE else max(1, ceil(counts.ready * ratio))
            past = self._desired[pool]
            past.append((observation.now, desired))
            while past[0][0] < observation.now - STABILIZATION:
                past.popleft()
            # At most four pods or a doubling a sync, like Kubernetes' default policies.
            replicas[pool] = min(max(desired, min(asked, max(n for _, n in past))), max(2 * asked, asked + 4))
        while sum(replicas.values()) > self._most:
            largest = max(replicas, key=lambda pool: replicas[pool])
            replicas[largest] -= 1
        changed = any(replicas[pool] != observation.workers[pool].expected for pool in replicas)
        return Effects(next_tick=next_tick, decision=Decision(replicas=replicas, reason="hpa") if changed else None)


def concurrency(traffic: Traffic, pool: Pool) -> float:
    """Requests that are in a pool, by Little's law."""
    rate = traffic.requests / traffic.duration
    if pool is Pool.PREFILL:
        return rate * (traffic.ttft or 0.0) / 1000
    return rate * traffic.osl * (traffic.itl or 0.0) / 1000
