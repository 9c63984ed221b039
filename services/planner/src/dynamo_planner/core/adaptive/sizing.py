"""How many replicas a load needs so that requests, not averages, keep their targets.

A pool that is busy all the time serves its mean rate and keeps no target: arrivals come in clumps. So prefill is a queue whose
waiting time has a tail (M/D/c, approximated; longer where prompts are unlike each other), and decode a number of sequences that
scatters about its mean (Poisson).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import erfc, exp, isfinite, sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import erfc as erfc_of

from dynamo_planner.core.estimator.capacity import Capacity, decode_capacity, mixed_capacity
from dynamo_planner.core.estimator.engine import EngineEstimator
from dynamo_planner.core.observing import EngineCapabilities, hit_rate

TAIL = 1.4
"""Decay of the waiting time of M/D/c is 2 (1 - rho) c / s; prompts that share an iteration all end with it, which takes some
of that away. Fitted to simulated engines: at 30 to 85 % load the share that misses comes out within some points."""
BORNE = 0.85
"""Share of its capacity up to which a pool bears a load, where the target cannot be met at all."""
FELT = 2 / 3
"""A request feels the mean batch of its own duration, whose variance is two thirds of a moment's (M/D/infinity)."""
BUSIEST = 0.98
"""Above this share of its capacity a pool's queue only grows."""
MOST = 1000
"""Replicas of a pool that are considered: those of two pools are weighed in all their combinations."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Load:
    """What comes: requests a second, and their means in tokens."""

    rate: float
    isl: float
    osl: float
    hits: float | None = None

    @property
    def fresh(self) -> float:
        """Prompt tokens of a request that no cache holds."""
        return self.isl * (1 - hit_rate(self.hits))

    @property
    def context(self) -> float:
        """Mean tokens of a sequence while it is decoded."""
        return self.isl + self.osl / 2


@dataclass(frozen=True, slots=True)
class Fit:
    """Replicas, and the share of requests that they are expected to serve within the target."""

    replicas: int
    share: float
    latency: float
    """ms of a request that need not wait"""
    capacity: float
    """requests a second of one replica, busy all the time"""
    reachable: bool = True
    """whether more replicas would reach the target at all; if not, these bear the load"""


class PrefillSizer:
    """Replicas of the prefill pool: time to first token is waiting, computing, and what comes after it."""

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
        """`ranks`: data parallel ones of an engine, each of which computes prompts of its own."""
        self._rate = load.rate
        self._ranks = ranks
        chunk = able.max_num_batched_tokens
        self.service = engine.prefill_ms(load.fresh, chunk)
        # Short prompts share iterations, so a prompt costs what it adds to one.
        together = max(1, min(int((chunk or 8192) / max(load.fresh, 1.0)), 8))
        self.each = min(self.service, engine.prefill_ms(together * load.fresh, chunk) / together)
        self._budget = target - self.service - after
        # Who waits has to wait for what is left of others' prompts: long ones are more of it than their number says (M/G/1).
        self._tail = TAIL * self._budget / (self.service * (1 + variation))

    queues = True
    """Who comes while all are busy waits, and those behind wait for it."""

    @property
    def reachable(self) -> bool:
        """Whether any number of replicas meets the target."""
        return self._budget > 0

    @property
    def latency(self) -> float:
        """Milliseconds of a prompt that need not wait."""
        return self.service

    @property
    def capacity(self) -> float:
        """Requests a second of one replica, busy all the time."""
        return self._ranks * 1000 / self.each

    @property
    def longest_wait(self) -> float:
        """Seconds that a prompt may wait."""
        return max(self._budget, 0.0) / 1000

    def shares(self, rates: Array, most: int) -> Array:
        """`share` at other rates: first by replicas from 0 to `most`, then as `rates` are."""
        offered = rates * self.each / 1000
        shares, blocked = np.zeros((most + 1, *rates.shape)), np.ones(rates.shape)
        for servers in range(1, most * self._ranks + 1):
            blocked = offered * blocked / (servers + offered * blocked)
            if servers % self._ranks:
                continue
            replicas, busy = servers // self._ranks, offered / servers
            if not self.reachable:
                shares[replicas] = busy < BORNE
                continue
            held = np.minimum(busy, BUSIEST)
            tail = np.exp(-(1 - held) * servers * self._tail)
            shares[replicas] = np.where(busy < BUSIEST, 1 - blocked / (1 - held * (1 - blocked)) * tail, 0.0)
        return shares

    def share(self, replicas: int) -> float:
        """Of requests whose first token comes in time."""
        if self._budget <= 0:
            return 0.0
        if self._rate <= 0:
            return 1.0
        if replicas < 1:
            return 0.0
        offered, servers = self._rate * self.each / 1000, replicas * self._ranks
        busy = offered / servers
        if busy >= BUSIEST:
            return 0.0
        tail = exp(-(1 - busy) * servers * self._tail)
        return 1.0 - waiting(servers, offered) * tail

    def least(self) -> int:
        """Replicas that bear the load at all."""
        return _bearing(self._rate / self.capacity) if self._rate > 0 else 0

    def fit(self, desired: float) -> Fit:
        """The fewest replicas that serve the desired share in time; as many as bear the load where no number does."""
        if self._rate <= 0:
            return Fit(0, 1.0, self.service, self.capacity)
        if self._budget <= 0:
            return Fit(self.least(), 0.0, self.service, self.capacity, reachable=False)
        return _fewest(self.share, desired, self.service, self.capacity)


class DecodeSizer:
    """Replicas of the decode pool, or of the one that does both."""

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
        """`able` is of all data parallel `ranks` of an engine, but for the tokens of an iteration, which are of each."""
        self._rate = load.rate
        if ttft is None:
            self.one = decode_capacity(
                engine,
                load.context,
                load.osl,
                target,
                max_kv_tokens=able.max_kv_tokens,
                max_num_seqs=able.max_num_seqs,
            )
        else:
            self.one = mixed_capacity(
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
        # Sequences that are there at once, by Little's law, at the pace that the target allows.
        self._sequences = load.rate * load.osl * self.one.latency / 1000
        self._each = load.osl * self.one.latency / 1000
        self.queues = ttft is not None
        """Whether it computes prompts, too: sequences alone slow each other down and do not queue."""
        self.longest_wait = (ttft or 0.0) / 1000
        """seconds that a prompt may wait"""

    @property
    def reachable(self) -> bool:
        """Whether any number of replicas meets the target."""
        return self.one.meets

    @property
    def latency(self) -> float:
        """Milliseconds of a token."""
        return self.one.latency

    @property
    def capacity(self) -> float:
        """Requests a second of one replica within the target."""
        return self.one.rps

    def shares(self, rates: Array, most: int) -> Array:
        """`share` at other rates: first by replicas from 0 to `most`, then as `rates` are."""
        sequences = rates * self._each
        room = np.arange(most + 1).reshape(-1, *[1] * rates.ndim) * self.one.batch
        if not self.reachable:
            return np.asarray((sequences < BORNE * room) * 1.0)
        spread = np.sqrt(2 * FELT * np.maximum(sequences, 1e-9))
        shares = np.where(sequences < BUSIEST * room, 1 - 0.5 * erfc_of((room - sequences) / spread), 0.0)
        return np.asarray(np.where(sequences <= 0, room > 0, shares) * 1.0)

    def share(self, replicas: int) -> float:
        """Of requests whose tokens come fast enough."""
        if self._rate <= 0:
            return 1.0
        if replicas < 1 or not self.one.meets:
            return 0.0
        room = replicas * self.one.batch
        if self._sequences >= BUSIEST * room:
            return 0.0
        return 1.0 - 0.5 * erfc((room - self._sequences) / sqrt(2 * FELT * self._sequences))

    def fit(self, desired: float) -> Fit:
        """The fewest replicas that serve the desired share fast enough; as many as bear the load where no number does."""
        one: Capacity = self.one
        if self._rate <= 0:
            return Fit(0, 1.0, one.latency, one.rps)
        if not one.meets:
            return Fit(_bearing(self._rate / one.rps), 0.0, one.latency, one.rps, reachable=False)
        return _fewest(self.share, desired, one.latency, one.rps)


Sizer = PrefillSizer | DecodeSizer


def _bearing(offered: float) -> int:
    """Replicas that bear what keeps so many of them busy."""
    return int(min(offered / BORNE, MOST - 1)) + 1


def _fewest(share: Callable[[int], float], desired: float, latency: float, capacity: float) -> Fit:
    low, high = 1, 1
    while share(high) < desired and high < MOST:
        low, high = high + 1, min(2 * high, MOST)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if share(middle) >= desired else (middle + 1, high)
    reached = share(low)
    return Fit(low, reached if isfinite(reached) else 0.0, latency, capacity, reachable=reached >= desired)


def waiting(servers: int, offered: float) -> float:
    """Share of arrivals that find all servers busy (Erlang C); `offered` is less than `servers`."""
    blocked = 1.0
    for n in range(1, servers + 1):
        blocked = offered * blocked / (n + offered * blocked)
    return blocked / (1 - (offered / servers) * (1 - blocked))
