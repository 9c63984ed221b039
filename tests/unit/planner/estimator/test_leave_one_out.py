"""How far off the estimator is at points of measured profiles that it was not given."""

from __future__ import annotations

import numpy as np
from dynamo_planner.core.profile import Profile

from tests.benchmarks.estimator import compare


def test_the_measured_profiles(measured: dict[str, Profile]) -> None:
    for profile in measured.values():
        result = compare(profile)
        assert result.prefill.interior < 0.04 < result.prefill_baseline.interior
        assert result.decode.interior < 0.07 < result.decode_baseline.interior
        assert result.decode.everywhere < 0.07


def test_one_in_three_of_the_points_and_noise(measured: dict[str, Profile]) -> None:
    profile = measured["h200-tp1"]
    sparse = Profile(prefill=profile.prefill[::3], decode=profile.decode[::3], max_kv_tokens=profile.max_kv_tokens)
    result = compare(sparse)
    assert result.prefill.interior < result.prefill_baseline.interior
    assert result.decode.interior < result.decode_baseline.interior
    assert np.isfinite(result.decode.worst)
