"""A measured profile as iterations to learn from (planner.md, section a.3)."""

from collections.abc import Iterator

from dynamo_planner.core.observing import EngineWork, ForwardPass, Pool
from dynamo_planner.core.profile import Profile


def forward_passes(profile: Profile) -> Iterator[ForwardPass]:
    """Each prefill point is one prompt in one iteration, each decode point one iteration of its batch.

    An engine that does both learns from all of them: iterations with prompts only, and with decoding only.
    """
    for prompt in profile.prefill:
        yield ForwardPass(
            pool=Pool.PREFILL,
            worker_id="profile",
            wall_time=prompt.ttft / 1000,
            scheduled=EngineWork(num_prefill_requests=1, sum_prefill_tokens=round(prompt.isl)),
        )
    for point in profile.decode:
        yield ForwardPass(
            pool=Pool.DECODE,
            worker_id="profile",
            wall_time=point.itl / 1000,
            scheduled=EngineWork(num_decode_requests=int(point.batch), sum_decode_kv_tokens=round(point.kv_tokens)),
        )
