"""Samples of the past from Prometheus' values for each minute."""

from math import inf, nan

from dynamo_planner.core.observation import PastTraffic, Traffic
from dynamo_planner.inputs.prometheus.client import SeriesValues
from dynamo_planner.inputs.prometheus.traffic import past_traffic


def series(**values: float) -> SeriesValues:
    """Values by minute: `m3=1.0` is that of the third minute."""
    return SeriesValues({}, tuple((60.0 * int(name[1:]), value) for name, value in values.items()))


def minute(ago: float, requests: float, isl: float, osl: float) -> PastTraffic:
    return PastTraffic(ago=60.0 * ago, traffic=Traffic(duration=60.0, requests=requests, isl=isl, osl=osl))


LENGTHS = {"isl": [series(m2=1000.0)], "osl": [series(m2=100.0)]}


def test_requests_of_all_series_are_summed_and_lengths_averaged_over_them() -> None:
    counts = [series(m1=10.0, m2=20.0), series(m2=40.0)]
    lengths = {"isl": [series(m1=1000.0, m2=1000.0), series(m2=3000.0)], "osl": [series(m1=100.0, m2=200.0)]}
    assert past_traffic(counts, lengths, 120.0) == (minute(1, 10, 1000, 100), minute(0, 60, 2000, 200))


def test_times_belong_to_a_minute_or_are_unknown() -> None:
    means = {**LENGTHS, "ttft": [series(m2=0.25), series(m2=0.75, m3=nan)], "itl": [series(m3=0.01)]}
    first, second = past_traffic([series(m2=20.0, m3=20.0)], means, 180.0)
    assert (first.traffic.ttft, first.traffic.itl) == (500.0, None)
    assert (second.traffic.ttft, second.traffic.itl) == (None, 10.0)


def test_a_minute_without_data_is_left_out_and_one_without_requests_is_zero() -> None:
    counts = [series(m1=0.0, m2=20.0, m4=0.0)]
    assert past_traffic(counts, LENGTHS, 240.0) == (
        minute(3, 0, 1000, 100),
        minute(2, 20, 1000, 100),
        minute(0, 0, 1000, 100),
    )


def test_invalid_numbers_are_ignored() -> None:
    counts = [series(m1=nan, m2=20.0, m3=inf)]
    lengths = {"isl": [series(m2=1000.0, m3=nan)], "osl": [series(m1=nan, m2=100.0)]}
    assert past_traffic(counts, lengths, 180.0) == (minute(1, 20, 1000, 100),)


def test_without_lengths_or_requests_there_is_no_past() -> None:
    assert past_traffic([series(m1=5.0)], {"isl": [], "osl": [series(m1=100.0)]}, 60.0) == ()
    assert past_traffic([], LENGTHS, 60.0) == ()
