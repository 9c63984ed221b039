"""What the policy aims at and how steadily, with reasons; the configuration of the graph says the rest."""

from __future__ import annotations

from dataclasses import dataclass

from dynamo_shared.api.contracts.planner import PlannerConfig

from dynamo_planner.core.adaptive.sizing import Aim


@dataclass(frozen=True, slots=True)
class Settings:
    """Seconds and shares."""

    share: float = 0.6
    """of requests that must keep each target at every moment, whatever it costs"""
    gain: float = 0.15
    """a replica beyond that comes if it brings so much of its capacity in requests that keep the target and else would not:
    at high rates nearly all do, and at low ones the last percents are left where each would cost a replica"""
    unknown_startup: float = 60.0
    """a new replica is thought to need, before one was measured: loading a model takes about a minute at least"""
    together: float = 45.0
    """replicas that will be needed so soon after each other are added at once"""
    hold: float = 60.0
    """a replica that is not needed stays at least so long, or as long as it would take to have it back"""
    spare: float = 1.06
    """a replica goes only if the load could rise by so much: noise at the border between two sizes moves nothing"""
    worth: float = 0.5
    """a replica is started, or kept, if it is needed for so much of the time that it takes to start"""
    drain: float = 30.0
    """in which prompts that wait shall be worked off"""
    shortest_sample: float = 10.0
    longest_sample: float = 30.0
    """of traffic: shorter windows are mostly chance, longer ones tell too late"""

    @property
    def aim(self) -> Aim:
        """What pools are sized for."""
        return Aim(self.share, self.gain)

    def sample(self, config: PlannerConfig) -> float:
        """Seconds between two looks at the traffic: a sixth of the throughput interval, within bounds."""
        sixth = config.throughput_adjustment_interval_seconds / 6
        return max(
            min(max(sixth, self.shortest_sample), self.longest_sample), float(config.load_adjustment_interval_seconds)
        )
