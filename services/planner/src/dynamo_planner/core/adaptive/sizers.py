"""How many replicas a load needs so that individual requests, not averages, meet their targets.

A pool that is always busy serves its mean rate but meets no target, because arrivals cluster. So prefill is modelled as
a queue whose waiting time has a tail (M/D/c, approximated; longer if prompts differ in length), and decode as a number
of sequences with a Poisson distribution.
"""

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import erfc

from dynamo_planner.core.estimator.capacity import decode_capacity, mixed_capacity
from dynamo_planner.core.estimator.engine import EngineEstimator
from dynamo_planner.core.observation import EngineCapabilities, hit_rate

TAIL = 1.4
"""The waiting time of M/D/c decays with 2 (1 - rho) c / s; prompts that share an iteration all end with it, which
reduces this. Fitted to simulated engines: at 30 to 85 % load, the share that misses is accurate to some points.
"""
MAX_UTILIZATION = 0.85
"""Share of its capacity up to which a pool can carry a load if the target cannot be met at all."""
BATCH_VARIANCE = 2 / 3
"""A request experiences the mean batch over its duration, whose variance is two thirds of the momentary one
(M/D/infinity).
"""
BUSIEST = 0.98
"""Above this share of its capacity, a pool's queue grows without end."""
FIRST = 8
"""Replicas whose shares are computed in the first batch."""
MOST = 1000
"""Most replicas of a pool that are considered: those of two pools are weighed in all combinations."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Load:
    """The load: requests a second, and their mean lengths in tokens."""

    rate: float
    isl: float
    osl: float
    hits: float | None = None

    @property
    def fresh(self) -> float:
        """Prompt tokens of a request that are not cached."""
        return self.isl * (1 - hit_rate(self.hits))

    @property
    def context(self) -> float:
        """Mean tokens of a sequence during decoding."""
        return self.isl + self.osl / 2


class Sizer(ABC):
    """How many replicas of one pool a load needs, and which share of its requests a number of them serves within the
    target.
    """

    rate: float
    """requests a second"""
    latency: float
    """ms of a prompt that does not wait, or of a token"""
    capacity: float
    """requests a second of one replica that is always busy, or within the token target"""
    reachable: bool
    """whether any number of replicas meets the target"""
    queues: bool
    """whether a request waits while all replicas are busy, and delays those behind it; sequences only slow each other
    down
    """
    longest_wait: float
    """seconds that a prompt may wait"""
    _line: Array = np.empty(0)
    """shares at this rate, by replicas: as many as were requested so far"""

    def at(self, rate: float) -> Self:
        """The same pool and mix of requests, at another rate."""
        other = copy(self)
        other.rate, other._line = rate, np.empty(0)
        return other

    @abstractmethod
    def shares(self, rates: Array, most: int) -> Array:
        """Shares of requests in time: first axis replicas from 0 to `most`, then the axes of `rates`.

        If the target cannot be met: 1 for replicas that can carry the load, 0 for fewer.
        """

    def share(self, replicas: int) -> float:
        """Share of requests that `replicas` serve in time."""
        if self.rate <= 0:
            return 1.0
        return float(self._shares_to(replicas)[replicas]) if self.reachable else 0.0

    def fewest(self, desired: float) -> int:
        """The fewest replicas that serve the desired share in time; if no number does, those that can bear the load."""
        if self.rate <= 0:
            return 0
        most = FIRST
        while not (enough := self._shares_to(most) >= desired).any():
            if most == MOST:
                return MOST
            most = min(2 * most, MOST)
        return int(enough.argmax())

    def _shares_to(self, most: int) -> Array:
        if most >= self._line.size:
            self._line = self.shares(np.array([self.rate]), max(most, FIRST))[:, 0]
        return self._line


class PrefillSizer(Sizer):
    """The prefill pool: the time to first token consists of waiting, computing, and the overhead after it."""

    queues = True

    def __init__(
        self,
        engine: EngineEstimator,
        load: Load,
        target: float,
        able: EngineCapabilities,
        after: float,
        *,
        variation: float = 0.0,
        ranks: int = 1,
    ) -> None:
        """`ranks`: data parallel ranks of an engine; each computes its own prompts."""
        self.rate, self._ranks = load.rate, ranks
        chunk = able.max_num_batched_tokens
        self.latency = engine.prefill_ms(load.fresh, chunk)
        # Short prompts share iterations, so a prompt costs only what it adds to one.
        together = max(1, min(int((chunk or 8192) / max(load.fresh, 1.0)), 8))
        self.each = min(self.latency, engine.prefill_ms(together * load.fresh, chunk) / together)
        self.capacity = ranks * 1000 / self.each
        budget = target - self.latency - after
        self.reachable = budget > 0
        self.longest_wait = max(budget, 0.0) / 1000
        # A waiting request waits for the remaining work of other prompts: long prompts contribute more than their
        # number (M/G/1).
        self._tail = TAIL * budget / (self.latency * (1 + variation))

    def shares(self, rates: Array, most: int) -> Array:
        """Shares of requests whose first token is in time."""
        offered = rates * self.each / 1000
        servers = self._ranks * np.arange(most + 1).reshape(-1, *[1] * rates.ndim)
        if not self.reachable:
            return np.asarray((offered < MAX_UTILIZATION * servers) * 1.0)
        # Erlang B by its recursion; from it follows Erlang C, the share of arrivals that must wait because all servers
        # are busy.
        blocked, each = np.ones((most + 1, *rates.shape)), np.ones(rates.shape)
        for count in range(1, most * self._ranks + 1):
            carried = offered * each
            each = carried / (count + carried)
            if count % self._ranks == 0:
                blocked[count // self._ranks] = each
        busy = np.minimum(offered / np.maximum(servers, 1), BUSIEST)
        tail = np.exp(-(1 - busy) * servers * self._tail)
        shares = 1 - blocked / (1 - busy * (1 - blocked)) * tail
        return np.asarray(np.where(offered < BUSIEST * servers, shares, 0.0))


class DecodeSizer(Sizer):
    """The decode pool, or the aggregated pool."""

    def __init__(
        self,
        engine: EngineEstimator,
        load: Load,
        target: float,
        able: EngineCapabilities,
        *,
        ttft: float | None = None,
        ranks: int = 1,
    ) -> None:
        """`able` covers all data parallel `ranks` of an engine; only the tokens of an iteration are per rank."""
        self.rate = load.rate
        if ttft is None:
            one = decode_capacity(
                engine,
                load.context,
                load.osl,
                target,
                max_kv_tokens=able.max_kv_tokens,
                max_num_seqs=able.max_num_seqs,
            )
        else:
            one = mixed_capacity(
                engine,
                load.isl,
                load.osl,
                ttft,
                target,
                hits=hit_rate(load.hits),
                chunk=able.max_num_batched_tokens,
                max_kv_tokens=able.max_kv_tokens,
                max_num_seqs=able.max_num_seqs,
                ranks=ranks,
            )
        self.latency, self.capacity, self.reachable, self._batch = one.latency, one.rps, one.meets, one.batch
        # Concurrent sequences for one request a second, by Little's law, at the token latency that the target permits.
        self._each = load.osl * one.latency / 1000
        self.queues = ttft is not None
        self.longest_wait = (ttft or 0.0) / 1000

    def shares(self, rates: Array, most: int) -> Array:
        """Shares of requests whose tokens are in time."""
        sequences = rates * self._each
        room = np.arange(most + 1).reshape(-1, *[1] * rates.ndim) * self._batch
        if not self.reachable:
            return np.asarray((sequences < MAX_UTILIZATION * room) * 1.0)
        spread = np.sqrt(2 * BATCH_VARIANCE * np.maximum(sequences, 1e-9))
        shares = np.where(sequences < BUSIEST * room, 1 - 0.5 * erfc((room - sequences) / spread), 0.0)
        return np.asarray(np.where(sequences <= 0, room > 0, shares) * 1.0)
