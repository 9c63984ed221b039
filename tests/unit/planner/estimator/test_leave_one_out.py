"""The estimator's error at points of measured profiles that it was not given."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dynamo_planner.core.estimator import stacking
from dynamo_planner.core.estimator.engine import EngineEstimator
from dynamo_planner.core.profile import Profile

from tests.benchmarks.estimator import compare
from tests.examples import TIMES


@pytest.mark.exhaustive
def test_the_error_at_each_left_out_point_of_the_measured_profiles(measured: dict[str, Profile]) -> None:
    for profile in list(measured.values())[:TIMES]:
        result = compare(profile)
        assert result.prefill.interior < 0.04 < result.prefill_baseline.interior
        assert result.decode.interior < 0.07 < result.decode_baseline.interior
        assert result.decode.everywhere < 0.07


def test_the_error_with_a_third_of_the_points_and_noise(measured: dict[str, Profile]) -> None:
    profile = measured["h200-tp1"]
    sparse = Profile(prefill=profile.prefill[::3], decode=profile.decode[::3], max_kv_tokens=profile.max_kv_tokens)
    result = compare(sparse)
    assert result.prefill.interior < result.prefill_baseline.interior
    assert result.decode.interior < result.decode_baseline.interior
    assert np.isfinite(result.decode.worst)


@pytest.mark.parametrize("factor", [0.5, 2.0, 4.0])
@pytest.mark.parametrize("bad", range(9))
def test_the_error_with_one_bad_point_in_nine(measured: dict[str, Profile], bad: int, factor: float) -> None:
    """Predictions between the nine points stay close to those without the bad one (4 % on average)."""
    profile = measured["h200-tp1"]
    nine = list(profile.prefill[::2])
    nine[bad] = replace(nine[bad], ttft=factor * nine[bad].ttft)
    engine = EngineEstimator(Profile(prefill=tuple(nine), decode=profile.decode[:1]))
    off = [abs(engine.prefill_ms(point.isl) / point.ttft - 1) for point in profile.prefill[1::2]]
    assert np.mean(off) < 0.075


def test_clean_points_are_all_used(measured: dict[str, Profile], monkeypatch: pytest.MonkeyPatch) -> None:
    results: list[object] = []

    def find(*given: Any, search: Callable[..., Any] = stacking._without_outlier) -> Any:
        results.append(search(*given))
        return results[-1]

    monkeypatch.setattr(stacking, "_without_outlier", find)
    for profile in measured.values():
        EngineEstimator(profile)
    assert len(results) == 2 * len(measured)
    assert all(each is None for each in results)
