"""What a policy sees: traffic, workers and what their engines do, at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite

HIGHEST_HIT_RATE = 0.95
"""Some of each prompt is always new (the reference's limit, planner.md a.4)."""


class Pool(StrEnum):
    """A pool of alike workers. The one pool of aggregated serving is `DECODE` (planner.md, section a.1)."""

    PREFILL = "prefill"
    DECODE = "decode"


class Missing(StrEnum):
    """Why an input is not there. None of them is zero demand."""

    UNREACHABLE = "unreachable"
    """The source did not answer."""
    NO_SERIES = "no_series"
    """The source knows nothing of this graph: not scraped, or not started."""
    NO_LABEL = "no_label"
    """There are series, but none says to which graph it belongs."""
    NOT_A_NUMBER = "not_a_number"
    """The source answered with NaN or infinity where there must be a number."""
    STALE = "stale"
    """The newest value is older than the interval that it should describe."""
    TOO_YOUNG = "too_young"
    """The source has watched the graph for less than half of the interval."""
    NO_FORWARD_PASSES = "no_forward_passes"
    """No worker reported what its engine does."""
    NO_WORKERS = "no_workers"
    """Worker counts are not known yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Requests that came (or, of older releases, `ended`) within `duration` seconds; lengths are means in tokens.

    No requests at all is a number, too: `requests` is 0 and the lengths are the last known ones, or 0.
    """

    duration: float
    requests: float
    isl: float
    osl: float
    kv_hit_rate: float | None = None
    """share of prefill tokens that were cached, 0 to 1"""
    ttft: float | None = None
    """mean time to first token, milliseconds: reported, never decided on by `reference`"""
    itl: float | None = None
    """mean inter-token latency, milliseconds"""
    ended: bool = False
    """whether requests are counted when they end: 0 says nothing of those that came, and growth shows as late as they last"""


def hit_rate(rate: float | None) -> float:
    """A KV hit rate to compute with: 0 where it is unknown, and below 1."""
    if rate is None or not isfinite(rate):
        return 0.0
    return min(max(rate, 0.0), HIGHEST_HIT_RATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTraffic:
    """Traffic from before planning began."""

    ago: float
    """seconds since its end"""
    traffic: Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolCounts:
    """Workers of one pool."""

    ready: int
    expected: int | None = None
    """replicas that are asked for; None while the deployment is not stable and the number is unknown"""
    pending: int = 0
    """replicas for which the cluster has no room"""
    starting: int = 0
    """replicas that have nodes and are not ready yet"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineWork:
    """What an engine computes in one iteration, or what waits at it: of all that engines report, what policies read."""

    num_prefill_requests: int = 0
    sum_prefill_tokens: int = 0
    var_prefill_length: float = 0.0
    num_decode_requests: int = 0
    sum_decode_kv_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardPass:
    """The newest word of one engine rank; `wall_time` in seconds, 0 for the heartbeat of an idle one."""

    pool: Pool
    worker_id: str
    dp_rank: int = 0
    wall_time: float = 0.0
    scheduled: EngineWork = EngineWork()
    queued: EngineWork = EngineWork()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCapabilities:
    """What one engine is able to and takes; None where neither the model card nor the graph says it."""

    num_gpu: int | None = None
    watts: int | None = None
    """that all of its GPUs together may draw"""
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    context_length: int | None = None
    max_kv_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """All that a policy knows at one tick. `now` in seconds of any clock that only goes forward."""

    now: float
    traffic: Traffic | None = None
    past: tuple[PastTraffic, ...] = ()
    """what came before `traffic`, oldest first, where the tick asked for it and it is known"""
    workers: Mapping[Pool, PoolCounts] = field(default_factory=dict)
    forward_passes: tuple[ForwardPass, ...] = ()
    capabilities: Mapping[Pool, EngineCapabilities] = field(default_factory=dict)
    startup_seconds: Mapping[Pool, float] = field(default_factory=dict)
    """measured time from a replica asked for to a worker that serves"""
    missing: Mapping[str, Missing] = field(default_factory=dict)
    """inputs that were asked for and are not there, by name: `traffic`, `forward_passes`, `workers`"""
