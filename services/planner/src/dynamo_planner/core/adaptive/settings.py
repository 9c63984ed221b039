"""What the policy aims at and how steadily, with reasons; the configuration of the graph says the rest."""

from dataclasses import dataclass

from dynamo_shared.api.contracts.planner import PlannerConfig


@dataclass(frozen=True, slots=True)
class Settings:
    """Seconds and shares."""

    unknown_startup: float = 60.0
    """a new replica is thought to need, before one was measured: loading a model takes about a minute at least"""
    together: float = 20.0
    """replicas that will be needed so soon after each other are added at once, and those that can go so soon go at once"""
    regret: float = 1.0
    """a replica that is not worth its price goes after so much of the time that it would take to have it back"""
    pauses: float = 2.0
    """requests have ceased after so many times the longest pause of late that they came back from"""
    surely: float = 0.8
    """the rest misses at most so much of what may miss, before a replica goes: else chance brings it back at once"""
    rows: int = 8
    """rates that may come, for each lead time: enough to distinguish one case in eight"""
    shortest_sample: float = 10.0
    longest_sample: float = 30.0
    """of traffic: shorter windows are mostly chance, longer ones show a change too late"""

    def sample(self, config: PlannerConfig) -> float:
        """Seconds between two samples of the traffic: a sixth of the throughput interval, within bounds."""
        sixth = config.throughput_adjustment_interval_seconds / 6
        return max(
            min(max(sixth, self.shortest_sample), self.longest_sample), float(config.load_adjustment_interval_seconds)
        )
