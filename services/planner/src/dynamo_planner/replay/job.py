"""The job of a worker process that compares configurations on the same traffic."""

from dataclasses import asdict, dataclass, field
from typing import Any

KIND = "replays"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replays:
    """The same traffic, planned by several configurations of a graph's planner. Seconds, milliseconds and tokens."""

    configs: tuple[dict[str, Any], ...]
    """PlannerConfigs as written"""
    steps: tuple[tuple[float, float, int, int], ...]
    """the traffic: requests a second, seconds, input and output tokens of a request"""
    prefill: tuple[tuple[float, float], ...]
    """the profile: prompt tokens and time to first token"""
    decode: tuple[tuple[float, float, float], ...]
    """the profile: tokens of a sequence, tokens of all, and time of a token"""
    max_kv_tokens: int | None
    startup: float
    replicas: dict[str, int]
    """by pool, at the beginning; a pool that is not named has its configuration's minimum"""
    gpus: dict[str, int]
    """of one engine, by pool, if the planner knows them"""
    watts: dict[str, int] = field(default_factory=dict)
    """power limit of these, by pool, if power is planned"""
    warmups: tuple[tuple[tuple[int, float, float], ...], ...] = ()
    """by configuration: requests and lengths of the intervals that predictors learn from"""

    def job(self) -> dict[str, Any]:
        """The job as it is sent."""
        return {"job": KIND, **asdict(self)}
