"""What the policy aims at and how steadily, with reasons; the configuration of the graph says the rest."""

from __future__ import annotations

from dataclasses import dataclass

from dynamo_shared.api.contracts.planner import PlannerConfig


@dataclass(frozen=True, slots=True)
class Settings:
    """Seconds and shares."""

    share: float = 0.66
    """of requests that shall keep each target, at every moment, at the worst: since replicas come whole, most moments keep
    many more. Found with `make bench-plan`, where it serves more requests in time than the reference for no more GPU-hours"""
    unknown_startup: float = 60.0
    """a new replica is thought to need, before one was measured: loading a model takes about a minute at least"""
    together: float = 45.0
    """replicas that will be needed so soon after each other are added at once"""
    near: float = 60.0
    """when one pool grows, the other takes a step along that it would take so soon after"""
    pause: float = 40.0
    """between two times that replicas go: several small steps down are one"""
    hold: float = 15.0
    """a replica that is not needed stays at least so long, or as long as it would take to have it back"""
    spare: float = 1.1
    """a replica goes only if the load could rise by so much: noise at the border between two sizes moves nothing"""
    worth: float = 1.0
    """a replica is started, or kept, if it is needed for so much of the time that it takes to start"""
    drain: float = 15.0
    """in which prompts that wait shall be worked off"""
    shortest_sample: float = 10.0
    longest_sample: float = 30.0
    """of traffic: shorter windows are mostly chance, longer ones tell too late"""

    def sample(self, config: PlannerConfig) -> float:
        """Seconds between two looks at the traffic: a sixth of the throughput interval, within bounds."""
        sixth = config.throughput_adjustment_interval_seconds / 6
        return max(
            min(max(sixth, self.shortest_sample), self.longest_sample), float(config.load_adjustment_interval_seconds)
        )
