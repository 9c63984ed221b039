"""How much prompt lengths vary, learnt from the iterations that engines report."""

from math import inf, nan
from random import Random

import pytest
from dynamo_planner.core.adaptive.pools import MOST, PromptLengths
from dynamo_planner.core.observation import EngineWork, ForwardPass, Pool


def iteration(*prompts: int, seconds: float | None = None) -> ForwardPass:
    mean = sum(prompts) / max(len(prompts), 1)
    return ForwardPass(
        pool=Pool.PREFILL,
        worker_id="a",
        wall_time=sum(prompts) / 50_000 if seconds is None else seconds,
        scheduled=EngineWork(
            num_prefill_requests=len(prompts),
            sum_prefill_tokens=sum(prompts),
            var_prefill_length=sum((each - mean) ** 2 for each in prompts) / max(len(prompts), 1),
        ),
    )


def learnt(*passes: ForwardPass) -> float:
    lengths = PromptLengths()
    lengths.observe(passes)
    return lengths.variation


def test_nothing_is_known_before_the_first_report() -> None:
    assert learnt() == learnt(iteration(), iteration(0), iteration(3000, seconds=0.0)) == 0


@pytest.mark.parametrize(("variance", "seconds"), [(nan, 0.1), (inf, 0.1), (-1.0, 0.1), (0.0, 5e-324)])
def test_an_invalid_report_changes_nothing(variance: float, seconds: float) -> None:
    lengths = PromptLengths()
    lengths.observe((iteration(1000, 5000),) * 50)
    before = lengths.variation
    odd = EngineWork(num_prefill_requests=2, sum_prefill_tokens=6000, var_prefill_length=variance)
    lengths.observe((ForwardPass(pool=Pool.PREFILL, worker_id="a", wall_time=seconds, scheduled=odd),))
    assert lengths.variation == before > 0


def test_equal_prompts_have_no_variation() -> None:
    assert learnt(*[iteration(3000)] * 100) == pytest.approx(0, abs=1e-9)


def test_long_iterations_are_reported_more_often_and_count_no_more() -> None:
    random, lengths = Random(3), PromptLengths()
    short, long = 800, 5200
    for _ in range(3000):
        # A random moment falls into an iteration with a probability in proportion to its length.
        observed = long if random.random() < long / (short + long) else short
        lengths.observe((iteration(observed),))
    assert lengths.variation == pytest.approx(((long - short) / (long + short)) ** 2, rel=0.3)


def test_prompts_in_the_same_iteration_count_with_their_own_lengths() -> None:
    together = learnt(*[iteration(1000, 5000)] * 400)
    assert together == pytest.approx((2000 / 3000) ** 2, rel=0.15)


def test_few_iterations_count_less_and_very_long_ones_are_bounded() -> None:
    assert learnt(iteration(100, 5000)) < 0.1
    assert learnt(*[iteration(*[10] * 50, 100_000)] * 400) <= MOST
