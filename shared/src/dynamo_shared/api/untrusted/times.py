"""Times and durations in stored objects, clamped so that calculations with them cannot overflow."""

from datetime import UTC, datetime, timedelta

#: Length limit of a time; Kubernetes writes RFC 3339 with microseconds, 27 characters.
MAX_CHARACTERS = 64
#: Range of times; others are clamped. A century can be added to or subtracted from both without overflow.
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2500, 1, 1, tzinfo=UTC)
#: Limit of the duration of a Lease. The reference uses 30 s.
LONGEST_LEASE = timedelta(hours=1)
#: Limit by which the clock of a Lease's holder may be ahead of this process's.
CLOCK_SKEW = timedelta(minutes=5)


def moment(text: object) -> datetime | None:
    """A stored time in UTC, clamped to EARLIEST and LATEST; None if it is not a time with a time zone."""
    if not isinstance(text, str) or len(text) > MAX_CHARACTERS:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    if parsed.tzinfo is None:
        return None
    # Clamped before the conversion to UTC, which may overflow at the year 9999.
    return min(max(parsed, EARLIEST), LATEST).astimezone(UTC)


def from_unix(seconds: float) -> datetime:
    """The time `seconds` after 1970, clamped to EARLIEST and LATEST; EARLIEST for NaN."""
    if not EARLIEST.timestamp() < seconds:
        return EARLIEST
    return LATEST if seconds >= LATEST.timestamp() else datetime.fromtimestamp(seconds, UTC)


def span(seconds: object, longest: timedelta) -> timedelta | None:
    """A stored duration in whole seconds, at most `longest`; None if it is not a positive integer."""
    if isinstance(seconds, bool) or not isinstance(seconds, int) or seconds <= 0:
        return None
    return longest if seconds >= longest.total_seconds() else timedelta(seconds=seconds)


def is_current(since: object, seconds: object, now: datetime) -> bool:
    """Whether a Lease that was renewed at `since` for `seconds` has not expired at `now` (UTC).

    The duration is limited to LONGEST_LEASE, and a renewal more than CLOCK_SKEW in the future is invalid, so that no
    value can hold a Lease for long.
    """
    renewed, duration = moment(since), span(seconds, LONGEST_LEASE)
    return renewed is not None and duration is not None and now - duration < renewed <= now + CLOCK_SKEW
