"""Times and spans of time of stored objects, clamped so that calculating with them cannot overflow."""

from datetime import UTC, datetime, timedelta

#: Kubernetes writes RFC 3339 with microseconds: 27 characters.
MAX_CHARACTERS = 64
#: Earlier and later times count as these. A century can be added to both, and taken from both.
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2500, 1, 1, tzinfo=UTC)
#: A Lease counts for no longer than this without renewal. Those of the reference say 30 s.
LONGEST_LEASE = timedelta(hours=1)
#: By which the clock of a Lease's holder may be ahead of this process's.
CLOCK_SKEW = timedelta(minutes=5)


def moment(text: object) -> datetime | None:
    """A stored time in UTC, between EARLIEST and LATEST; None for anything that is not a time with a time zone."""
    if not isinstance(text, str) or len(text) > MAX_CHARACTERS:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    if parsed.tzinfo is None:
        return None
    # Compared before it is converted: the year 9999 has no counterpart in UTC where its own zone is behind.
    return min(max(parsed, EARLIEST), LATEST).astimezone(UTC)


def from_unix(seconds: float) -> datetime:
    """A time of so many seconds since 1970, between EARLIEST and LATEST; what is not a number counts as EARLIEST."""
    if not EARLIEST.timestamp() < seconds:
        return EARLIEST
    return LATEST if seconds >= LATEST.timestamp() else datetime.fromtimestamp(seconds, UTC)


def span(seconds: object, longest: timedelta) -> timedelta | None:
    """A stored number of whole seconds, at most `longest`; None for anything that is not a positive integer."""
    if isinstance(seconds, bool) or not isinstance(seconds, int) or seconds <= 0:
        return None
    return longest if seconds >= longest.total_seconds() else timedelta(seconds=seconds)


def is_current(since: object, seconds: object, now: datetime) -> bool:
    """Whether a Lease renewed at `since` for so many `seconds` counts now; `now` in UTC.

    It counts for at most LONGEST_LEASE, and not at all from further ahead than CLOCK_SKEW: neither the year 9999 nor a
    duration of 63 years holds anything for long.
    """
    renewed, duration = moment(since), span(seconds, LONGEST_LEASE)
    return renewed is not None and duration is not None and now - duration < renewed <= now + CLOCK_SKEW
