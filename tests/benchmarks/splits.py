"""The requests of a trace that each split of the GPUs keeps, from fourteen runs instead of twenty-eight.

Time to first token depends on the prefill replicas and time between tokens on the decode replicas. A split keeps a
request if its first token is in time with that many prefill replicas (and enough decode replicas), and its other tokens
with that many decode replicas (and enough prefill replicas). While prompts wait, decode replicas have less load than
that assumes, but those requests are late anyway.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from dynamo_planner.core.observation import Pool
from dynamo_planner.replay.comparison import ReplayInput

from tests.benchmarks.clairvoyant import Array, Split, kept_by_slot

MOST = 8
"""GPUs of all replicas together; one each."""
SAME = 0.0002
"""Share of requests by which the results of two replica counts may differ and still count as equal."""
SPLITS = [(p, d) for p in range(1, MOST) for d in range(1, MOST) if p + d <= MOST]
Flags = npt.NDArray[np.bool_]


def one_pool(replay: ReplayInput, pool: Pool, replicas: int) -> str:
    """The requests that meet this pool's target with this many replicas of it; as hexadecimal digits."""
    other = Pool.DECODE if pool is Pool.PREFILL else Pool.PREFILL
    outcome = replay.static({pool: replicas, other: MOST})
    target = outcome.graph.ttft if pool is Pool.PREFILL else outcome.graph.itl
    took = [job.ttft if pool is Pool.PREFILL else job.itl for job in outcome.jobs]
    flags = [each is not None and each <= target for each in took]
    return np.packbits(np.array(flags, dtype=np.bool_)).tobytes().hex()


def by_replicas(replay: ReplayInput, pool: Pool) -> dict[str, str]:
    """`one_pool` for each number of replicas; from the number at which nothing changes any more, the same digits."""
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
