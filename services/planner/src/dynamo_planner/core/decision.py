"""What a policy answers: when to run again, how many replicas there shall be, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from dynamo_planner.core.observing import Observation, Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A moment at which a policy is to run, and what it needs to know then. Seconds of the observation's clock."""

    at: float
    run_load: bool = False
    run_throughput: bool = False
    traffic_window: float | None = None
    """seconds of traffic that shall be observed; None: none is needed"""
    past_window: float | None = None
    """seconds of traffic before these that shall be observed as well; None: none is needed"""
    need_forward_passes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Replicas that each pool shall have, absolute; pools that are not named stay as they are."""

    replicas: Mapping[Pool, int]
    reason: str
    """one of the policy's reasons, a snake_case token"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a tick ended as it did, for events, metrics and reports. Plain data: numbers, strings, lists, mappings."""

    load_reason: str = ""
    throughput_reason: str = ""
    message: str = ""
    """one sentence for people"""
    at_risk: str = ""
    """why the promised share of requests may not be kept, and what would be needed; empty where it is expected to be kept"""
    needs_passes: bool = False
    """whether nothing can be decided before engines have reported what they do"""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    predictions: Mapping[str, float] = field(default_factory=dict)
    """requests_per_second, isl, osl, kv_hit_rate as predicted; estimated_ttft_ms, estimated_itl_ms; capacities (requests/s)"""
    alternatives: tuple[Mapping[str, Any], ...] = ()
    """what else was considered, with its figures and why it was not taken"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What follows from a tick."""

    next_tick: Tick
    decision: Decision | None = None
    explanation: Explanation = Explanation()


class Policy(Protocol):
    """A way to plan. Holds what it has learnt; asks no clock and does no I/O, so that replay is exact."""

    def first_tick(self, now: float) -> Tick:
        """When it wants to be asked first."""

    def on_tick(self, tick: Tick, observation: Observation) -> Effects:
        """What follows from the observation at a tick that the policy asked for."""
