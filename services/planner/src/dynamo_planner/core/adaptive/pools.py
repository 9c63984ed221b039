"""The sizing and the plan of one pool."""

from collections import Counter
from dataclasses import dataclass, replace
from math import isfinite

from dynamo_shared.api.contracts.planner import Mode, PlannerConfig

from dynamo_planner.core.adaptive.sizers import DecodeSizer, Load, PrefillSizer, Sizer
from dynamo_planner.core.estimator.engine import EngineEstimator
from dynamo_planner.core.observation import EngineCapabilities, ForwardPass, Pool

OVERHEAD_SHARE = 0.1
"""Weight of the newest observation in the mean time between a computed prompt and its first token."""
MOST_OVERHEAD = 0.3
"""Part of the TTFT target: a longer overhead occurs before a prompt's computation, not after it."""


MOST_RANKS = 64
"""Most data parallel ranks of an engine that are considered: each is a server of its own in a pool's queue."""


class Sizing:
    """Creates the sizers of a configuration's pools."""

    def __init__(self, config: PlannerConfig, engine: EngineEstimator) -> None:
        self._config, self._engine = config, engine
        self.lengths = PromptLengths()
        engines = config.aic_interpolation
        self._reported = {
            Pool.PREFILL: engines.prefill_pick.dp if engines else 1,
            Pool.DECODE: engines.decode_pick.dp if engines else 1,
        }
        """data parallel ranks of an engine, from the simulation or as reported by engines"""
        self.after: float | None = None
        """ms from a computed prompt to the first token (transfer of the KV cache, first iteration), as learned"""

    def observe(self, passes: tuple[ForwardPass, ...]) -> None:
        """Learn the prompt lengths and the ranks that engines report."""
        self.lengths.observe(passes)
        ranks = Counter((forward.pool, forward.worker_id) for forward in passes)
        for pool, known in self._reported.items():
            self._reported[pool] = max((count for (each, _), count in ranks.items() if each is pool), default=known)

    def _ranks(self, pool: Pool) -> int:
        return min(self._reported[pool], MOST_RANKS)

    def ready(self, pool: Pool) -> bool:
        """Whether enough is known about the pool's engines."""
        if pool is Pool.PREFILL:
            return self._engine.prefill.ready
        return self._engine.decode.ready and (self._config.mode is not Mode.AGG or self._engine.prefill.ready)

    def sizer(self, pool: Pool, load: Load, able: EngineCapabilities) -> Sizer:
        """The sizer of one pool, for a load."""
        config, ranks = self._config, self._ranks(pool)
        if pool is Pool.PREFILL:
            after = self.after if self.after is not None else config.itl_ms
            variation = self.lengths.variation
            return PrefillSizer(self._engine, load, config.ttft_ms, able, after, variation=variation, ranks=ranks)
        ttft = config.ttft_ms if config.mode is Mode.AGG else None
        # A model card describes one rank.
        whole = replace(
            able,
            max_num_seqs=able.max_num_seqs and able.max_num_seqs * ranks,
            max_kv_tokens=able.max_kv_tokens and able.max_kv_tokens * ranks,
        )
        return DecodeSizer(self._engine, load, config.itl_ms, whole, ttft=ttft, ranks=ranks)

    def learn_after(self, ttft: float, load: Load, able: EngineCapabilities, ready: int) -> None:
        """Learn from the mean TTFT (ms) of a pool of `ready` replicas that is not busy, so that few requests wait."""
        sizer = PrefillSizer(self._engine, load, self._config.ttft_ms, able, 0.0, ranks=self._ranks(Pool.PREFILL))
        busy = load.rate / sizer.capacity / max(ready, 1)
        if busy > 0.5:
            return
        # Mean waiting time of M/D/1, for the few requests that wait.
        overhead = ttft - sizer.latency * (1 + busy / (2 * (1 - busy)))
        if overhead > MOST_OVERHEAD * self._config.ttft_ms:
            return  # an old queue that is being processed, not an overhead of every request
        overhead = max(overhead, 0.0)
        self.after = overhead if self.after is None else self.after + OVERHEAD_SHARE * (overhead - self.after)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlan:
    """The plan of one pool, and its figures."""

    current: int
    """already requested, including those that start or are pending"""
    replicas: int
    reason: str
    sizer: Sizer
    """for the load at the horizon"""
    brings: dict[int, float]
    """requests a second in time, by replicas, soon after new ones are ready: for the plan, one fewer and one more"""
    price: float
    """requests a second in time that one replica must bring, if GPUs have a price"""
    gpus: int = 1
    """of one replica"""
    held: int = 0
    """replicas of these that were needed recently and are held, because the load may return before others could start
    """
    reserve: int = 0
    """replicas of these that only a burst needs, which would end before others could start"""


FORGOTTEN = 0.995
"""Factor by which earlier observations lose weight with each observed iteration."""
PRIOR_ITERATIONS = 20.0
"""Iterations of uniform prompts assumed at the beginning: the estimate is believed only when many more were observed.
"""
MOST = 2.0
"""Maximum of the squared coefficient of variation: beyond it, a few giant prompts form queues of their own."""


class PromptLengths:
    """Moments of the lengths of prompts in iterations."""

    def __init__(self) -> None:
        self._observed = self._prompts = self._tokens = self._squares = 0.0

    @property
    def variation(self) -> float:
        """Squared coefficient of variation: 0 if all prompts are equally long."""
        if self._tokens <= 0:
            return 0.0
        variation = self._prompts * self._squares / self._tokens**2 - 1
        return min(max(variation, 0.0), MOST) * self._observed / (self._observed + PRIOR_ITERATIONS)

    def observe(self, passes: tuple[ForwardPass, ...]) -> None:
        """Learn from iterations that compute prompts."""
        for forward in passes:
            work, count = forward.scheduled, forward.scheduled.num_prefill_requests
            if forward.pool is not Pool.PREFILL or count < 1 or work.sum_prefill_tokens <= 0 or forward.wall_time <= 0:
                continue
            squares = count * work.var_prefill_length + work.sum_prefill_tokens**2 / count
            if work.var_prefill_length < 0 or not isfinite(squares / forward.wall_time):
                continue
            self._observed = FORGOTTEN * self._observed + 1
            self._prompts = FORGOTTEN * self._prompts + count / forward.wall_time
            self._tokens = FORGOTTEN * self._tokens + work.sum_prefill_tokens / forward.wall_time
            self._squares = FORGOTTEN * self._squares + squares / forward.wall_time
