"""What each split of the GPUs keeps of a trace, from fourteen runs in place of twenty-eight.

Time to first token depends on the prefill replicas and time between tokens on the decode replicas; a request is
kept by a split when its first is in time with so many prefill replicas (and decode replicas enough), and its
tokens with so many decode replicas (and prefill replicas enough). Where prompts wait, decode replicas have less to
do than that says, but these requests are late anyhow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from dynamo_planner.core.observing import Pool
from dynamo_planner.replay.outcome import ReplayOutcome
from dynamo_planner.replay.replaying import ReplayInput

from tests.benchmarks.clairvoyant import Array, Split, kept_by_slot

MOST = 8
"""GPUs of all replicas together; one each."""
SPLITS = [(p, d) for p in range(1, MOST) for d in range(1, MOST) if p + d <= MOST]
Flags = npt.NDArray[np.bool_]


def one_pool(replay: ReplayInput, pool: Pool, replicas: int) -> dict[str, str]:
    """Which requests are in time by this pool's target, with so many replicas of it; as hexadecimal digits."""
    other = Pool.DECODE if pool is Pool.PREFILL else Pool.PREFILL
    outcome = replay.static({pool: replicas, other: MOST})
    flags = outcome.in_ttft() if pool is Pool.PREFILL else outcome.in_itl()
    return {"kept": np.packbits(np.array(flags, dtype=np.bool_)).tobytes().hex()}


def flags_of(observed: Mapping[str, str], requests: int) -> Flags:
    """The digits as flags."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(observed["kept"]), dtype=np.uint8), count=requests).astype(
        np.bool_
    )


def kept(
    prefill: Mapping[int, Flags], decode: Mapping[int, Flags], arrivals: Sequence[float], seconds: float
) -> dict[Split, Array]:
    """Requests that each split keeps, by slot."""
    return {(p, d): kept_by_slot(arrivals, (prefill[p] & decode[d]).tolist(), seconds) for p, d in SPLITS}


def by_slot(outcome: ReplayOutcome) -> Array:
    """Requests that a run kept, by slot."""
    return kept_by_slot([job.request.at for job in outcome.jobs], outcome.in_time(), outcome.seconds)
