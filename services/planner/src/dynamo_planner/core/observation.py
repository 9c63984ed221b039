"""The inputs of a policy: traffic, workers and the state of their engines, at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite

HIGHEST_HIT_RATE = 0.95
"""A part of each prompt is always new (the reference's limit, planner.md a.4)."""
FRESH_FOR = 10.0
"""Seconds for which the last report of an engine counts: ten heartbeats of an idle engine."""
UNKNOWN_STARTUP = 60.0
"""Assumed start-up seconds before one was measured: loading a model takes at least about a minute."""


class Pool(StrEnum):
    """A pool of identical workers. The single pool of aggregated serving is `DECODE` (planner.md, section a.1)."""

    PREFILL = "prefill"
    DECODE = "decode"


class Missing(StrEnum):
    """Why an input is missing. No such reason means zero demand."""

    UNREACHABLE = "unreachable"
    """The source did not answer."""
    NO_SERIES = "no_series"
    """The source has no series of this graph: it is not scraped, or not started."""
    NO_LABEL = "no_label"
    """There are series, but no label says to which graph they belong."""
    NOT_A_NUMBER = "not_a_number"
    """The source answered NaN or infinity instead of a number."""
    STALE = "stale"
    """The newest value is older than the interval that it must describe."""
    TOO_YOUNG = "too_young"
    """The source has scraped the graph for less than half of the interval."""
    NO_FORWARD_PASSES = "no_forward_passes"
    """No worker reported what its engine does."""
    NO_WORKERS = "no_workers"
    """Worker counts are not known yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Requests that arrived (or, for older releases, `ended`) within `duration` seconds; lengths are means in tokens.

    No requests is also a value: `requests` is 0, and the lengths are the last known ones, or 0.
    """

    duration: float
    requests: float
    isl: float
    osl: float
    kv_hit_rate: float | None = None
    """share of prefill tokens that were cached, 0 to 1"""
    ttft: float | None = None
    """mean time to first token, milliseconds: only reported, not used for decisions by `reference`"""
    itl: float | None = None
    """mean inter-token latency, milliseconds"""
    ended: bool = False
    """whether requests are counted when they end: then 0 does not mean that none arrived, and growth shows with the
    delay of a request's duration
    """


def hit_rate(rate: float | None) -> float:
    """A KV hit rate for calculations: 0 if unknown, and below 1."""
    if rate is None or not isfinite(rate):
        return 0.0
    return min(max(rate, 0.0), HIGHEST_HIT_RATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTraffic:
    """Traffic before planning began."""

    ago: float
    """seconds since its end"""
    traffic: Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCounts:
    """Workers of one pool."""

    ready: int
    expected: int | None = None
    """requested replicas; None while the deployment is not stable and the number is unknown"""
    pending: int = 0
    """replicas for which the cluster has no room"""
    starting: int = 0
    """replicas that have nodes but are not ready yet"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineWork:
    """Work that an engine computes in one iteration, or that waits: the part of the engine's report that
    policies read.
    """

    num_prefill_requests: int = 0
    sum_prefill_tokens: int = 0
    var_prefill_length: float = 0.0
    num_decode_requests: int = 0
    sum_decode_kv_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardPass:
    """The newest report of one engine rank; `wall_time` in seconds, 0 for the heartbeat of an idle engine."""

    pool: Pool
    worker_id: str
    dp_rank: int = 0
    wall_time: float = 0.0
    scheduled: EngineWork = EngineWork()
    queued: EngineWork = EngineWork()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCapabilities:
    """The limits and GPUs of one engine; None if neither the model card nor the graph states them."""

    num_gpu: int | None = None
    watts: int | None = None
    """power limit of all of its GPUs together"""
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    context_length: int | None = None
    max_kv_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """All inputs of a policy at one tick. `now` in seconds of any monotonic clock."""

    now: float
    traffic: Traffic | None = None
    past: tuple[PastTraffic, ...] = ()
    """the traffic before `traffic`, oldest first, if the tick requested it and it is known"""
    workers: Mapping[Pool, PoolCounts] = field(default_factory=dict)
    forward_passes: tuple[ForwardPass, ...] = ()
    capabilities: Mapping[Pool, EngineCapabilities] = field(default_factory=dict)
    startup_seconds: Mapping[Pool, float] = field(default_factory=dict)
    """measured time from the request for a replica until its worker is ready"""
    missing: Mapping[str, Missing] = field(default_factory=dict)
    """requested inputs that are missing, by name: `traffic`, `forward_passes`, `workers`"""
