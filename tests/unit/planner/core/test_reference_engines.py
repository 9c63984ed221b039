"""Models of engines: what they learn, estimate and reject. Case numbers are those of planner.md, section c.5."""

import math
from dataclasses import replace

import pytest
from dynamo_planner.core.observation import EngineCapabilities, EngineWork, ForwardPass, Pool
from dynamo_planner.core.reference.engines import (
    MOST_SAMPLES,
    AggregatedEngine,
    DecodeEngine,
    Engines,
    MovingAverage,
    PrefillEngine,
    prefill_share,
)
from dynamo_planner.core.reference.regression import BucketedSamples, EngineSample
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.planner.core.reference_cases import BATCHED, BOTH, DM, PM, config, decode_iteration, prefill_iteration

SIZE = {"limit": 64, "buckets": 16, "least": 5}


def both_roles(**size: int) -> AggregatedEngine:
    engine = AggregatedEngine(**{**SIZE, **size})
    for tokens, kv in ((500, 1000), (1000, 9000), (1500, 3000), (2000, 8000), (100, 500), (700, 4000)):
        engine.learn(
            ForwardPass(
                pool=Pool.DECODE,
                worker_id="d",
                wall_time=1e-5 * tokens + 1e-6 * kv + 0.002,
                scheduled=EngineWork(
                    num_prefill_requests=1,
                    sum_prefill_tokens=tokens,
                    num_decode_requests=kv // 100,
                    sum_decode_kv_tokens=kv,
                ),
            )
        )
    return engine


class TestPrefill:
    def test_case_1_capacity_is_reported_even_if_it_misses_the_target(self):
        capacity = Engines(config(), PM).prefill.capacity(1000, batched_tokens=BATCHED, share=1.0)
        assert capacity.requests_per_second == pytest.approx(0.99800, abs=5e-6)
        assert capacity.ttft == pytest.approx(1.0020, abs=5e-5)

    def test_a_prompt_longer_than_an_iteration_takes_several(self):
        capacity = Engines(config(), PM).prefill.capacity(4000, batched_tokens=BATCHED, share=1.0)
        assert capacity.ttft == pytest.approx(2.048 + 0.002 + 1.952 + 0.002)

    def test_an_unknown_batch_limit_takes_a_prompt_in_one_iteration(self):
        assert Engines(config(), PM).prefill.capacity(4000, batched_tokens=None, share=1.0).ttft == pytest.approx(4.002)

    def test_case_23_a_queue_is_cut_into_chunks(self):
        engine = PrefillEngine(**SIZE)
        for tokens in (100, 200, 300, 400, 500):
            engine.learn(prefill_iteration(tokens, 0.001 * tokens))
        assert engine.average_isl == 300
        assert engine.ttft(5000, batched_tokens=BATCHED, share=1.0) == pytest.approx(5.3, abs=0.05)

    def test_case_23_cache_hits_shorten_the_wait(self):
        engine = Engines(config(), PM).prefill
        full, half = (engine.ttft(3000, batched_tokens=BATCHED, share=prefill_share(rate)) for rate in (0.0, 0.5))
        assert half / full < 0.75

    @pytest.mark.parametrize("samples", range(5))
    def test_it_is_not_ready_with_fewer_than_five_iterations(self, samples):
        engine = PrefillEngine(**SIZE)
        for index in range(samples):
            engine.learn(prefill_iteration(100 * (index + 1), 0.1))
        assert not engine.ready
        with pytest.raises(RuntimeError, match="too few observations"):
            engine.model.wall(1)

    def test_samples_in_which_more_work_takes_less_time_are_not_used(self):
        engine = PrefillEngine(**SIZE)
        for tokens in range(100, 700, 100):
            engine.learn(prefill_iteration(tokens, 1 / tokens))
        assert not engine.ready

    def test_iterations_of_one_length_give_a_constant(self):
        engine = PrefillEngine(**SIZE)
        for _ in range(5):
            engine.learn(prefill_iteration(300, 0.2))
        assert engine.model.wall(9000) == pytest.approx(0.2)

    def test_no_iteration_takes_less_than_a_microsecond(self):
        engine = PrefillEngine(**SIZE)
        for tokens in range(1000, 6000, 1000):
            engine.learn(prefill_iteration(tokens, 0.001 * (tokens - 900)))
        assert engine.model.wall(0) == 1e-6

    def test_heartbeats_count_only_in_averages(self):
        engine = PrefillEngine(**SIZE)
        engine.learn(prefill_iteration(300, 0.0))
        assert engine.average_isl == 300
        assert engine.model.samples == ()


class TestDecode:
    def test_case_2_capacity_is_the_largest_batch_within_the_target(self):
        capacity = Engines(config(), DM).decode.capacity(1000, 150, target=0.05, most_kv=None, most_seqs=None)
        assert capacity.batch == 4
        assert capacity.requests_per_second == pytest.approx(0.65041, abs=5e-6)
        assert capacity.itl == pytest.approx(0.0410, abs=5e-5)

    def test_one_sequence_is_served_even_if_it_misses_the_target(self):
        capacity = Engines(config(), DM).decode.capacity(30_000, 150, target=0.05, most_kv=None, most_seqs=None)
        assert capacity.batch == 1
        assert capacity.itl > 0.05

    @pytest.mark.parametrize(
        ("most_kv", "most_seqs", "batch"), [(3500, None, 3), (None, 2, 2), (500, None, 1), (None, None, 40)]
    )
    def test_cache_and_sequences_cap_the_batch(self, most_kv, most_seqs, batch):
        capacity = Engines(config(), DM).decode.capacity(1000, 150, target=9, most_kv=most_kv, most_seqs=most_seqs)
        assert capacity.batch == batch

    def test_case_23_estimate_for_one_more_sequence(self):
        engine = DecodeEngine(**SIZE)
        for n in (5, 10, 15, 20, 25):
            kv = 200 * n
            engine.learn(decode_iteration(n, kv, 1e-4 * kv + 5e-4 * n + 1e-3))
        assert engine.itl(3000) == pytest.approx(0.329, abs=0.0005)

    def test_a_negative_cost_of_requests_counts_as_zero(self):
        engine = DecodeEngine(**SIZE)
        for n, kv in ((1, 9000), (5, 2000), (9, 4000), (3, 7000), (7, 1000), (2, 3000)):
            engine.learn(decode_iteration(n, kv, 0.1 - 1e-3 * n + 1e-5 * kv))
        assert engine.ready
        assert engine.model.wall(1, 5000) == engine.model.wall(9, 5000)
        assert engine.model.wall(1, 6000) - engine.model.wall(1, 5000) == pytest.approx(0.01)

    def test_a_negative_cost_of_cache_makes_the_model_unfit(self):
        engine = DecodeEngine(**SIZE)
        for n, kv in ((1, 9000), (5, 2000), (9, 4000), (3, 7000), (7, 1000), (2, 3000)):
            engine.learn(decode_iteration(n, kv, 0.2 - 1e-5 * kv))
        assert not engine.ready


class TestAggregated:
    able = EngineCapabilities(num_gpu=1, max_num_batched_tokens=BATCHED, max_num_seqs=64, max_kv_tokens=100_000)

    def capacity(self, engine, **change):
        desired = {"share": 1.0, "ttft_target": 0.5, "itl_target": 0.05, "able": self.able, **change}
        return engine.capacity(1000, 150, **desired)

    def test_the_next_larger_batch_misses_the_target(self):
        engine = both_roles()
        best = self.capacity(engine)
        isl, osl = 1000, 150

        def wall(batch: int) -> float:
            return engine.model.wall(min(batch * isl / osl, BATCHED), batch * (isl + osl / 2))

        assert best.batch > 1
        assert wall(best.batch) <= 0.05 < wall(best.batch + 1)
        assert best.requests_per_second == pytest.approx(best.batch / (osl * wall(best.batch)))

    def test_a_tighter_target_never_serves_more(self):
        engine = both_roles()
        rates = [self.capacity(engine, itl_target=target).requests_per_second for target in (0.02, 0.03, 0.05, 0.5)]
        assert rates == sorted(rates)

    def test_cache_caps_the_batch(self):
        able = EngineCapabilities(max_num_batched_tokens=BATCHED, max_kv_tokens=2200)
        assert self.capacity(both_roles(), able=able, itl_target=9, ttft_target=9).batch == 2

    def test_a_single_sequence_is_served_if_no_target_can_be_kept(self):
        assert self.capacity(both_roles(), itl_target=1e-9).batch == 1

    def test_without_a_batch_limit_there_is_no_estimate(self):
        assert self.capacity(both_roles(), able=EngineCapabilities()) is None

    def test_it_learns_from_a_disaggregated_profile(self):
        engines = Engines(config(mode="agg"), BOTH)
        assert engines.aggregated.ready
        assert not engines.prefill.ready
        assert engines.aggregated.model.wall(1000, 0) < engines.aggregated.model.wall(2000, 0)

    def test_a_capacity_takes_few_estimates_whatever_limits_are_stated(self, monkeypatch):
        """A graph with enormous targets and limits occupied a thread of all planning without end."""
        engine, estimates = both_roles(), 0
        wall = engine.model.wall

        def counted(*features: float) -> float:
            nonlocal estimates
            estimates += 1
            return wall(*features)

        monkeypatch.setattr(engine.model, "wall", counted)
        able = EngineCapabilities(max_num_batched_tokens=2**40, max_num_seqs=2**40, max_kv_tokens=2**40)
        capacity = engine.capacity(100.0, 10.0, share=1.0, ttft_target=1e9, itl_target=1e9, able=able)
        assert capacity is not None
        assert capacity.batch == 2**40 // 105
        assert estimates < 1000

    @pytest.mark.parametrize("itl", [0.001, 0.01, 0.02, 0.05, 0.1])
    @pytest.mark.parametrize("ttft", [0.01, 0.05, 0.2, 1.0])
    def test_the_capacity_is_the_largest_batch_that_keeps_both_targets(self, itl, ttft):
        engine, able = both_roles(), EngineCapabilities(max_num_batched_tokens=500, max_kv_tokens=100_000)
        size = {"share": 1.0, "ttft_target": ttft, "itl_target": itl}
        capacity = engine.capacity(800.0, 50.0, able=able, **size)
        # With fewer sequences allowed, the largest batch is tried itself.
        tried = [engine.capacity(800.0, 50.0, able=replace(able, max_num_seqs=most), **size) for most in range(1, 200)]
        kept = [each.batch for each in tried if each and each.itl <= itl and each.ttft <= ttft]
        assert capacity is not None
        assert capacity.batch == max(kept, default=1)


class TestHitRates:
    @pytest.mark.parametrize(
        ("rate", "share"),
        [(0.99, 0.05), (0.95, 0.05), (1.0, 0.05), (0.5, 0.5), (0, 1), (-1, 1), (None, 1), (math.nan, 1), (math.inf, 1)],
    )
    def test_case_23_rates_are_clamped(self, rate, share):
        assert prefill_share(rate) == pytest.approx(share)


class TestAverages:
    def test_leading_zeros_do_not_count(self):
        average = MovingAverage(3)
        assert average.value == 0
        for value in (0, 0, 6, 0):
            average.add(value)
        assert average.value == 3

    def test_only_the_last_values_count(self):
        average = MovingAverage(2)
        for value in (100, 1, 3):
            average.add(value)
        assert average.value == 2


class TestSamples:
    def test_rare_loads_are_kept_longer_than_common_ones(self):
        store = BucketedSamples(axes=1, limit=8, buckets=4)
        store.add(EngineSample((10_000.0,), 1.0))
        for index in range(50):
            store.add(EngineSample((float(index % 5),), 0.1))
        assert len(store.samples) == 8
        assert store.samples[0].features == (10_000.0,)

    def test_the_oldest_sample_of_the_fullest_bucket_is_evicted(self):
        store = BucketedSamples(axes=1, limit=3, buckets=2)
        for wall, value in enumerate((0.0, 10.0, 1.0, 2.0)):
            store.add(EngineSample((value,), float(wall)))
        assert [sample.features[0] for sample in store.samples] == [10.0, 1.0, 2.0]

    def test_two_features_share_the_buckets(self):
        store = BucketedSamples(axes=2, limit=4, buckets=16)
        for value in ((0.0, 0.0), (100.0, 100.0), (1.0, 99.0), (99.0, 1.0), (2.0, 2.0)):
            store.add(EngineSample(value, 1.0))
        assert [sample.features for sample in store.samples] == [(100.0, 100.0), (1.0, 99.0), (99.0, 1.0), (2.0, 2.0)]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1000)), max_size=60),
    st.integers(1, 12),
    st.sampled_from([1, 4, 9, 16, 10**30]),
)
def test_the_kept_samples_are_those_that_the_rule_says(values, limit, buckets):
    """One sample too many: the oldest one of the fullest bucket is dropped, by the present range of each feature."""
    parts, kept = round(buckets**0.5), []
    store = BucketedSamples(axes=2, limit=limit, buckets=buckets)
    for value in values:
        features = tuple(map(float, value))
        store.add(EngineSample(features, 1.0))
        kept.append(features)
        if len(kept) > limit:
            ranges = [(min(axis), max(axis) - min(axis)) for axis in zip(*kept, strict=True)]
            own = [
                tuple(
                    min(parts - 1, int((x - low) / width * parts)) if width else 0
                    for x, (low, width) in zip(each, ranges, strict=True)
                )
                for each in kept
            ]
            fullest = max(map(own.count, own))
            kept.pop(next(place for place, bucket in enumerate(own) if own.count(bucket) == fullest))
    assert [sample.features for sample in store.samples] == kept


class Measured(float):
    """A number that counts how often it is compared."""

    compared = 0

    def __lt__(self, other: float) -> bool:
        Measured.compared += 1
        return super().__lt__(other)


def test_learning_from_thousands_of_engines_reads_no_sample_again():
    """Each report of an engine divided all kept samples into buckets, one by one: a tick took many seconds."""
    store = BucketedSamples(axes=1, limit=100, buckets=16)
    for number in range(1000):
        store.add(EngineSample((Measured(number % 37),), 1.0))
    assert Measured.compared == 0


def test_samples_are_bounded_whatever_the_configuration_says():
    engines = Engines(config(max_num_fpm_samples=10**9))
    engines.learn(prefill_iteration(tokens, tokens / 1000) for tokens in range(1, MOST_SAMPLES + 100))
    assert len(engines.prefill.model.samples) == MOST_SAMPLES
