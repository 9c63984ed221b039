"""Traces: read with errors that name the line, generated the same each time."""

import json

import pytest
from dynamo_planner.replay import traces
from dynamo_planner.replay.traces import TraceError, TraceRequest, read_trace
from hypothesis import given
from hypothesis import strategies as st

LINE = '{"timestamp": 1500, "input_length": 100, "output_length": 5, "hash_ids": [1, 2]}'


def test_a_record_is_read() -> None:
    assert read_trace([LINE, "", "  "], "t") == [TraceRequest(1.5, 100, 5, (1, 2))]


@given(
    st.lists(
        st.builds(TraceRequest, st.integers(0, 10**6).map(float), st.integers(1, 9), st.integers(1, 9)), min_size=1
    )
)
def test_requests_are_in_order_of_time(requests: list[TraceRequest]) -> None:
    records = [{"timestamp": r.at * 1000, "input_length": r.isl, "output_length": r.osl} for r in requests]
    assert read_trace(map(json.dumps, records), "t") == sorted(requests, key=lambda request: request.at)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "t, line 2: "),
        ("[1]", "not an object; each line must be like"),
        (LINE.replace("1500", "-1"), "timestamp is -1; it must be a number from 0"),
        (LINE.replace("100", '"100"'), "input_length is '100'; it must be a number from 1"),
        (LINE.replace('"output_length": 5', '"osl": 5'), "output_length is null; it must be a number from 1"),
        (LINE.replace("[1, 2]", '"ab"'), "hash_ids is not a list of integers"),
        (LINE.replace("1500", "NaN"), "timestamp is nan"),
        (LINE.replace("1500", "1763900000000"), "the trace's beginning, 2678400000 at most"),
        ("[" * 100_000, "nested too deeply"),
        (LINE.replace("100", "1" * 400), "input_length is a number of 1326 bits; it must"),
        (LINE.replace("100", "1e300"), "input_length is 1e+300; it must be a number from 1 to 1e+15"),
    ],
)
def test_an_invalid_line_is_named(line: str, words: str) -> None:
    with pytest.raises(TraceError) as refused:
        read_trace([LINE, line], "t")
    assert str(refused.value).startswith("t, line 2: ")
    assert words in str(refused.value)


def test_an_empty_trace_is_rejected() -> None:
    with pytest.raises(TraceError, match="contains no request"):
        read_trace([""], "t")


def test_generators_have_the_requested_rates() -> None:
    wave = traces.sine(low=5, high=45, period=600, seconds=1800, isl=10, osl=2, seed=3)
    assert len(wave) == pytest.approx(25 * 1800, rel=0.02)
    assert sum(270 <= r.at < 330 for r in wave) == pytest.approx(45 * 60, rel=0.06)
    assert sum(r.at < 30 for r in wave) == pytest.approx(5 * 30, rel=0.25)
    steps = traces.ladder(steps=[(8, 90), (0, 30), (18, 120)], isl=10, osl=2)
    assert [sum(a <= r.at < b for r in steps) for a, b in ((90, 120), (240, 1e9))] == [0, 0]
    assert sum(r.at < 90 for r in steps) == pytest.approx(720, rel=0.1)
    burst = traces.bursts(low=2, high=40, every=100, length=20, seconds=1000, isl=10, osl=2)
    by_second = [sum(s <= r.at < s + 10 for r in burst) / 10 for s in range(0, 1000, 10)]
    assert min(by_second) < 4
    assert max(by_second) > 30
    assert traces.constant(rate=0, seconds=10, isl=1, osl=1) == []
    assert burst == traces.bursts(low=2, high=40, every=100, length=20, seconds=1000, isl=10, osl=2)
