"""The estimator learns from observed engines: soon, within bounds, and never so that more work takes less time."""

from dataclasses import replace
from itertools import pairwise

import pytest
from dynamo_planner.core.estimator.engine import EngineEstimator
from dynamo_planner.core.estimator.model import CELLS
from dynamo_planner.core.observation import EngineWork, ForwardPass, Pool
from dynamo_planner.core.profile import DecodePoint, PrefillPoint, Profile
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples

PROFILE = Profile(
    prefill=tuple(PrefillPoint(isl=isl, ttft=15 + 0.02 * isl) for isl in (100, 500, 1000, 2000, 4000, 8000)),
    decode=tuple(
        DecodePoint(context=1000, kv_tokens=batch * 1000.0, itl=4 + 0.1 * batch) for batch in (1, 5, 10, 25, 50, 100)
    ),
)


def prompt(tokens: int, seconds: float) -> ForwardPass:
    work = EngineWork(num_prefill_requests=1, sum_prefill_tokens=tokens)
    return ForwardPass(pool=Pool.PREFILL, worker_id="a", wall_time=seconds, scheduled=work)


def step(batch: int, kv: int, seconds: float) -> ForwardPass:
    work = EngineWork(num_decode_requests=batch, sum_decode_kv_tokens=kv)
    return ForwardPass(pool=Pool.DECODE, worker_id="a", wall_time=seconds, scheduled=work)


def test_an_engine_slower_than_its_profile() -> None:
    engine = EngineEstimator(PROFILE)
    for _ in range(4):
        engine.observe((prompt(1000, 0.070),))
    assert engine.prefill_ms(1000) == pytest.approx(35, rel=0.02), "four samples are not enough"
    for _ in range(60):
        engine.observe((prompt(1000, 0.070), prompt(4000, 0.190)))
    assert engine.prefill_ms(1000) == pytest.approx(70, rel=0.05)
    assert engine.prefill.scale == pytest.approx(2, rel=0.02)
    assert engine.prefill_ms(2000) == pytest.approx(110, rel=0.1), "the level holds between observed points"


def test_an_engine_that_matches_its_profile_changes_nothing() -> None:
    engine, before = EngineEstimator(PROFILE), EngineEstimator(PROFILE).decode_ms(20, 1000)
    for _ in range(50):
        engine.observe((step(20, 20_000, 0.006), step(50, 50_000, 0.009)))
    assert engine.decode_ms(20, 1000) == pytest.approx(before, rel=0.02)


def test_ranks_of_one_engine_are_one_engine() -> None:
    engine, before = EngineEstimator(PROFILE), EngineEstimator(PROFILE).decode_ms(50, 1000)
    each = step(8, 8000, (4 + 0.1 * 64) / 1000)
    ranks = tuple(replace(each, dp_rank=rank) for rank in range(8))
    others = tuple(replace(rank, worker_id="b") for rank in ranks)
    for _ in range(50):
        engine.observe(ranks + others)
    assert engine.decode_ms(50, 1000) == pytest.approx(before, rel=0.02), "a profile has the sequences of all ranks"
    assert engine.decode._store.count == 100


def test_the_longest_prompt_of_all_ranks_determines_an_iteration() -> None:
    engine = EngineEstimator()
    for tokens in (500, 1000, 2000, 4000, 3000):
        whole = prompt(tokens, (10 + 0.02 * tokens) / 1000)
        idle = ForwardPass(pool=Pool.PREFILL, worker_id="a", dp_rank=1)
        engine.observe((whole, idle, replace(prompt(100, 0.012), dp_rank=2)))
    assert engine.prefill_ms(1500) == pytest.approx(40, rel=0.1)


def test_without_a_profile() -> None:
    engine = EngineEstimator()
    assert not engine.prefill.ready
    with pytest.raises(ValueError, match="no data yet: no profile"):
        engine.prefill_ms(100)
    for tokens in (500, 1000, 2000, 4000, 3000):
        engine.observe((prompt(tokens, (10 + 0.02 * tokens) / 1000),))
    assert engine.prefill.ready
    assert engine.prefill_ms(1500) == pytest.approx(40, rel=0.1)


def test_heartbeats_and_invalid_reports_are_ignored() -> None:
    engine = EngineEstimator()
    for wall in (0.0, -1.0, float("nan"), float("inf")):
        engine.observe(tuple(prompt(1000, wall) for _ in range(10)))
    engine.observe(tuple(prompt(0, 1.0) for _ in range(10)))
    assert not engine.prefill.ready


def test_mixed_iterations_also_teach_prefill() -> None:
    engine = EngineEstimator(PROFILE)
    both = EngineWork(sum_prefill_tokens=2000, num_decode_requests=10, sum_decode_kv_tokens=10_000)
    took = engine.mixed_ms(2000, 10, 1000) * 1.5 / 1000
    for _ in range(40):
        engine.observe((ForwardPass(pool=Pool.DECODE, worker_id="a", wall_time=took, scheduled=both),))
    assert engine.mixed_ms(2000, 10, 1000) == pytest.approx(took * 1000, rel=0.05)


SAMPLES = st.lists(st.tuples(st.integers(1, 60_000), st.floats(1e-4, 10)), min_size=1, max_size=60)


@examples(10)
@given(SAMPLES, st.booleans())
def test_more_work_never_takes_less_time(samples: list[tuple[int, float]], known: bool) -> None:
    engine = EngineEstimator(PROFILE if known else None)
    for tokens, seconds in samples:
        engine.observe((prompt(tokens, seconds),))
    if not engine.prefill.ready:
        return
    values = [engine.prefill_ms(tokens) for tokens in (0, 1, 100, 1000, 5000, 20_000, 100_000)]
    assert values[0] > 0
    assert all(a <= b * (1 + 1e-9) for a, b in pairwise(values))


def test_memory_is_bounded() -> None:
    engine = EngineEstimator()
    for i in range(1, 3000):
        engine.observe((step(i, i * i, 0.01),))
    assert len(engine.decode._store.cells) <= CELLS
