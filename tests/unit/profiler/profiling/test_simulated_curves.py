"""Curves of engines, with times of the test's."""

from math import inf, nan
from typing import Any, cast

import pytest
from dynamo_profiler.profiling.simulation import curves
from dynamo_profiler.profiling.simulation.wire import Curves

SIZE = {"tp": 1, "pp": 1, "dp": 4, "moe_tp": 1, "moe_ep": 4}
JOB = Curves(
    model="m",
    system="s",
    backend="vllm",
    osl=100,
    max_context=4096,
    prefill=SIZE,
    decode=SIZE,
    prefill_points=3,
    decode_points=3,
)


class Engines:
    """A prompt takes a millisecond for each of its tokens, a token of an answer ten.

    `instead`: the time of some lengths; of all, if it has 0.
    """

    def __init__(self, instead: dict[int, float] | None = None) -> None:
        self._instead = instead or {}

    def estimate(self, _role: str, *, isl: int, osl: int, batch: int) -> dict[str, float]:
        wrong = self._instead.get(isl, self._instead.get(0))
        return {"ttft": float(isl * batch), "tpot": 10.0} if wrong is None else {"ttft": wrong, "tpot": wrong}


def test_throughput_is_that_of_all_ranks_of_an_engine() -> None:
    job, engines = JOB, cast(Any, Engines())
    prefill = curves._prefill(job, engines, lambda *_: None)
    assert prefill["prefill_ttft"] == prefill["prefill_isl"] == [100, 1848, 3596]
    # Four prompts at once on four GPUs.
    assert prefill["prefill_thpt_per_gpu"] == [1000.0] * 3
    decode = curves._decode(job, engines, 100_000, lambda *_: None)
    assert decode["z_thpt_per_gpu"][0] == 100.0, "one sequence of each rank, a token each 10 ms"


@pytest.mark.parametrize("wrong", [nan, inf, 0.0, -1.0])
def test_a_length_for_which_there_is_no_time_is_left_out(wrong: float) -> None:
    """The planner refused a profile with such a time; a zero ended the profiling of curves."""
    engines = cast(Any, Engines({1848: wrong}))
    assert curves._prefill(JOB, engines, lambda *_: None)["prefill_isl"] == [100, 3596]
    decode = curves._decode(JOB, engines, 100_000, lambda *_: None)
    usual = curves._decode(JOB, cast(Any, Engines()), 100_000, lambda *_: None)
    assert set(usual["y_context_length"]) - set(decode["y_context_length"]) == {1848 + 250.0}
    assert len({len(decode[each]) for each in ("x_kv_usage", "y_context_length", "z_itl", "z_thpt_per_gpu")}) == 1
    for curve in (curves._prefill, lambda job, engines, report: curves._decode(job, engines, 100_000, report)):
        with pytest.raises(ValueError, match="no times"):
            curve(JOB, cast(Any, Engines({0: wrong})), lambda *_: None)
