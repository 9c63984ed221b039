"""The capacity of an engine: within its targets, and never from impossible numbers."""

import pytest
from dynamo_planner.core.estimator.capacity import decode_capacity, mixed_capacity
from dynamo_planner.core.estimator.engine import EngineEstimator
from dynamo_planner.core.observation import hit_rate
from dynamo_planner.core.profile import DecodePoint, PrefillPoint, Profile
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples

PROFILE = Profile(
    prefill=tuple(PrefillPoint(isl=isl, ttft=15 + 0.02 * isl) for isl in (100, 500, 1000, 2000, 4000, 8000, 16000)),
    decode=tuple(
        DecodePoint(context=context, kv_tokens=batch * context, itl=4 + 0.05 * batch + 3e-5 * batch * context)
        for context in (500, 2000, 8000)
        for batch in (1, 10, 25, 50, 100)
    ),
    max_kv_tokens=800_000,
)
ENGINE = EngineEstimator(PROFILE)


def test_long_prompts_are_chunked() -> None:
    assert ENGINE.prefill_ms(10_000, 4000) == pytest.approx(15 * 3 + 0.02 * 10_000, rel=0.02)


@examples(30)
@given(st.floats(1, 16000), st.sampled_from([None, 2048, 8192]))
def test_no_prompt_is_computed_faster_than_in_the_profile(tokens: float, chunk: int | None) -> None:
    assert ENGINE.prefill_ms(tokens, chunk) >= max(14, 0.018 * tokens)


def test_hit_rates_above_095_are_capped() -> None:
    assert [hit_rate(h) for h in (None, float("nan"), -1.0, 0.5, 0.95, 1.0)] == [0, 0, 0, 0.5, 0.95, 0.95]


@examples(20)
@given(st.floats(50, 30_000), st.floats(5, 100), st.floats(0, 100))
def test_a_looser_target_never_serves_less(context: float, target: float, more: float) -> None:
    tight, loose = (decode_capacity(ENGINE, context, 300, t) for t in (target, target + more))
    assert tight.batch <= loose.batch
    assert tight.rps <= loose.rps * (1 + 1e-9)


def test_the_limits_of_decode() -> None:
    by_sla = decode_capacity(ENGINE, 2000, 100, 9.5)
    assert by_sla.latency == pytest.approx(9.5, rel=0.03)
    assert by_sla.rps == pytest.approx(by_sla.batch * 1000 / (100 * by_sla.latency))
    assert decode_capacity(ENGINE, 2000, 100, 1e6).batch == 125, "a quarter more than was measured"
    assert decode_capacity(ENGINE, 2000, 100, 1e6, max_kv_tokens=20_000).batch == 10
    assert decode_capacity(ENGINE, 2000, 100, 1e6, max_num_seqs=7).batch == 7
    missed = decode_capacity(ENGINE, 2000, 100, 1.0)
    assert (missed.batch, missed.meets) == (1, False)


def test_one_pool_for_both() -> None:
    capacity = mixed_capacity(ENGINE, 1000, 200, 500, 30, chunk=8192)
    assert capacity.meets
    assert capacity.latency <= 30
    assert capacity.rps < decode_capacity(ENGINE, 1100, 200, 30).rps
    assert mixed_capacity(ENGINE, 1000, 200, 500, 30, chunk=8192, hits=0.9).rps > capacity.rps
    tight = mixed_capacity(ENGINE, 1000, 200, 10, 1, chunk=8192)
    assert not tight.meets
    assert tight.rps > 0
