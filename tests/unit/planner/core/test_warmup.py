import json

import pytest
from dynamo_planner.core.warmup import LONGEST, Interval, WarmupError, intervals


def record(at, isl=100, osl=10):
    return json.dumps({"timestamp": at, "input_length": isl, "output_length": osl, "hash_ids": [1]})


def test_requests_are_counted_and_lengths_averaged_by_interval():
    lines = [record(0), record(59_999, 300, 30), "", record(61_000, 50, 5)]
    assert intervals(lines, 60) == [Interval(requests=2, isl=200, osl=20), Interval(requests=1, isl=50, osl=5)]


def test_intervals_without_requests_are_reported_between_others_but_not_before_the_first():
    lines = [record(600_000), record(720_000)]
    assert [each.requests for each in intervals(lines, 60)] == [1, 0, 1]


def test_an_empty_trace_gives_no_intervals():
    assert intervals([], 60) == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "t.jsonl, line 2: not JSON"),
        ("[]", "a JSON list"),
        ('{"timestamp": 1}', "input_length is null"),
        (record(-1), "timestamp is -1"),
        (record(True), "timestamp is true"),
        ('{"timestamp": NaN, "input_length": 1, "output_length": 1}', "line 2: not JSON"),
    ],
)
def test_an_invalid_line_is_named(line, words):
    with pytest.raises(WarmupError, match=words):
        intervals([record(0), line], 60, "t.jsonl")


def test_a_trace_spans_20_000_intervals_at_most():
    assert len(intervals([record(0), record(60_000 * (LONGEST - 1))], 60)) == LONGEST == 20_000
    with pytest.raises(WarmupError, match="spans 20001 intervals of 60 s, but only 20000"):
        intervals([record(0), record(60_000 * LONGEST)], 60)


def test_a_trace_in_the_wrong_unit_is_rejected():
    with pytest.raises(WarmupError, match="milliseconds"):
        intervals([record(0), record(1.7e18)], 60)
