"""Times and durations of stored objects: any text gives a result that is safe to calculate with."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dynamo_shared.api.untrusted import times
from hypothesis import given
from hypothesis import strategies as st

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LONGEST = timedelta(hours=1)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-01T00:00:00Z", NOW),
        ("2026-01-01T01:00:00.000000+01:00", NOW),
        ("9999-12-31T23:59:59.999999-12:00", times.LATEST),
        ("0001-01-01T00:00:00+12:00", times.EARLIEST),
        ("2026-01-01T00:00:00", None),
        ("2026-13-01T00:00:00Z", None),
        ("2026-01-01T00:00:00." + "0" * 1_000_000 + "Z", None),
        ("", None),
        (None, None),
        (10**400, None),
        ({"a": 1}, None),
    ],
)
def test_a_time_is_clamped_or_rejected(text: object, moment: datetime | None) -> None:
    assert times.moment(text) == moment


@pytest.mark.parametrize(
    ("seconds", "span"),
    [
        (30, timedelta(seconds=30)),
        (2**31 - 1, LONGEST),
        (10**400, LONGEST),
        (0, None),
        (-1, None),
        (True, None),
        (float("inf"), None),
        ("30", None),
        (None, None),
    ],
)
def test_a_duration_is_clamped_or_rejected(seconds: object, span: timedelta | None) -> None:
    assert times.span(seconds, LONGEST) == span


STORED: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.datetimes().map(datetime.isoformat)
    | st.datetimes(timezones=st.timezones()).map(datetime.isoformat)
)


@given(since=STORED, seconds=STORED)
def test_any_lease_gives_an_answer(since: Any, seconds: Any) -> None:
    assert times.is_current(since, seconds, NOW) in (True, False)
    if (moment := times.moment(since)) is not None:
        for century in (timedelta(days=36500), timedelta(days=-36500)):
            assert (moment + century).tzinfo is UTC
