"""What each split of the GPUs keeps of a trace, from fourteen runs in place of twenty-eight.

Time to first token depends on the prefill replicas and time between tokens on the decode replicas; a request is
kept by a split when its first is in time with so many prefill replicas (and decode replicas enough), and its
tokens with so many decode replicas (and prefill replicas enough). Where prompts wait, decode replicas have less to
do than that says, but these requests are late anyhow.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from dynamo_planner.core.observing import Pool
from dynamo_planner.replay.replaying import ReplayInput

from tests.benchmarks.clairvoyant import Array, Split, kept_by_slot

MOST = 8
"""GPUs of all replicas together; one each."""
SAME = 0.0002
"""Share of requests that two numbers of replicas may treat otherwise and are still alike."""
SPLITS = [(p, d) for p in range(1, MOST) for d in range(1, MOST) if p + d <= MOST]
Flags = npt.NDArray[np.bool_]


def one_pool(replay: ReplayInput, pool: Pool, replicas: int) -> str:
    """Which requests are in time by this pool's target, with so many replicas of it; as hexadecimal digits."""
    other = Pool.DECODE if pool is Pool.PREFILL else Pool.PREFILL
    outcome = replay.static({pool: replicas, other: MOST})
    target = outcome.graph.ttft if pool is Pool.PREFILL else outcome.graph.itl
    took = [job.ttft if pool is Pool.PREFILL else job.itl for job in outcome.jobs]
    flags = [each is not None and each <= target for each in took]
    return np.packbits(np.array(flags, dtype=np.bool_)).tobytes().hex()


def by_replicas(replay: ReplayInput, pool: Pool) -> dict[str, str]:
    """`one_pool` of each number of replicas; beyond the number from which on nothing changes, that one's digits."""
    results: dict[str, str] = {}
    for replicas in range(1, MOST):
        digits = one_pool(replay, pool, replicas)
        before, results[str(replicas)] = results.get(str(replicas - 1)), digits
        if before is not None and _apart(before, digits) <= SAME * len(replay.requests):
            return results | {str(more): digits for more in range(replicas + 1, MOST)}
    return results


def _apart(one: str, other: str) -> int:
    return (int(one, 16) ^ int(other, 16)).bit_count()


def flags_of(digits: str, requests: int) -> Flags:
    """The digits as flags."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(digits), dtype=np.uint8), count=requests).astype(np.bool_)


def kept(
    prefill: Mapping[int, Flags], decode: Mapping[int, Flags], arrivals: Sequence[float], seconds: float
) -> dict[Split, Array]:
    """Requests that each split keeps, by slot."""
    return {(p, d): kept_by_slot(arrivals, (prefill[p] & decode[d]).tolist(), seconds) for p, d in SPLITS}
