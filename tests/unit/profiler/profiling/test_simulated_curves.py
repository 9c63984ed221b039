"""Curves of engines, with times of the test's."""

from typing import Any, cast

from dynamo_profiler.profiling.simulation import curves
from dynamo_profiler.profiling.simulation.wire import Curves


class Engines:
    """A prompt takes a millisecond for each of its tokens, a token of an answer ten."""

    def estimate(self, _role: str, *, isl: int, osl: int, batch: int) -> dict[str, float]:
        return {"ttft": float(isl * batch), "tpot": 10.0}


def test_throughput_is_that_of_all_ranks_of_an_engine() -> None:
    size = {"tp": 1, "pp": 1, "dp": 4, "moe_tp": 1, "moe_ep": 4}
    job = Curves(
        model="m", system="s", backend="vllm", osl=100, max_context=4096, prefill=size, decode=size, prefill_points=3
    )
    engines = cast(Any, Engines())
    prefill = curves._prefill(job, engines, lambda *_: None)
    assert prefill["prefill_ttft"] == prefill["prefill_isl"] == [100, 1848, 3596]
    # Four prompts at once on four GPUs.
    assert prefill["prefill_thpt_per_gpu"] == [1000.0] * 3
    decode = curves._decode(job, engines, 100_000, lambda *_: None)
    assert decode["z_thpt_per_gpu"][0] == 100.0, "one sequence of each rank, a token each 10 ms"
