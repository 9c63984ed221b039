"""The answer of a policy: when to run again, how many replicas are desired, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

from dynamo_planner.core.observation import Observation, Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A time at which a policy must run, and the inputs that it then needs. In seconds of the observation's clock."""

    at: float
    run_load: bool = False
    run_throughput: bool = False
    traffic_window: float | None = None
    """seconds of traffic to observe; None: no traffic is needed"""
    past_window: float | None = None
    """seconds of traffic before these to observe as well; None: not needed"""
    need_forward_passes: bool = False
    fits_series: bool = False
    """whether models of time series are fitted, which takes seconds"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Desired replicas of each pool, absolute; pools that are not named stay unchanged."""

    replicas: Mapping[Pool, int]
    reason: str
    """one of the policy's reasons, a snake_case token"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Reasons for a tick's outcome, for events, metrics and reports. Plain data: numbers, strings, lists, mappings."""

    reason: str = ""
    """why the tick ended like this: one of the policy's reasons, a snake_case token"""
    message: str = ""
    """one sentence for people"""
    at_risk: str = ""
    """why the promised share of requests may be missed, and the remedy; empty if it is expected to be kept"""
    needs_passes: bool = False
    """whether nothing can be decided before engines have reported forward passes"""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    predictions: Mapping[str, float] = field(default_factory=dict)
    """predicted requests_per_second, isl, osl, kv_hit_rate; estimated_ttft_ms, estimated_itl_ms;
    capacities (requests/s)
    """
    alternatives: tuple[Mapping[str, Any], ...] = ()
    """alternatives that were considered, with their figures and why they were not chosen"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """The outcome of a tick."""

    next_tick: Tick
    decision: Decision | None = None
    explanation: Explanation = Explanation()

    def raised(self, minimum: Mapping[Pool, int] | None, reason: str) -> Self:
        """With these replicas, and words about them, if nothing was decided; None: no pool is below its minimum."""
        if self.decision is not None or minimum is None:
            return self
        message = "; ".join(filter(None, (self.explanation.message, "pools below their minimum are raised to it")))
        return replace(
            self,
            decision=Decision(replicas=minimum, reason=reason),
            explanation=replace(self.explanation, message=message),
        )


class Policy(Protocol):
    """Plans replicas. Keeps what it has learned; reads no clock and does no I/O, so that replay is exact."""

    def first_tick(self, now: float) -> Tick:
        """The first tick that the policy requests."""

    def on_tick(self, tick: Tick, observation: Observation) -> Effects:
        """The outcome for the observation at a tick that the policy requested."""
