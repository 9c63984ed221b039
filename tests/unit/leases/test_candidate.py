"""When a Kubernetes Lease may be taken over: none of its timestamps is trusted."""

from typing import Any

import pytest
from dynamo_shared.leases.candidate import LONGEST_DURATION, LeaseCandidate, LeaseRecord
from dynamo_shared.leases.term import FastestClock
from hypothesis import given
from hypothesis import strategies as st

TTL = 15.0


def lease(holder: Any = "other", duration: Any = 15, renewed: Any = "2026-01-01T00:00:00.000000Z") -> dict[str, Any]:
    return {"spec": {"holderIdentity": holder, "leaseDurationSeconds": duration, "renewTime": renewed}}


def test_a_free_lease_is_taken_at_once() -> None:
    for each in (
        None,
        LeaseRecord.of(lease("")),
        LeaseRecord.of({}),
        LeaseRecord.of({"spec": None}),
        LeaseRecord.of(lease("me")),
    ):
        assert LeaseCandidate("me", TTL).may_take(each, 0.0)


def test_a_holder_that_is_silent_for_the_duration_is_gone() -> None:
    candidate, result = LeaseCandidate("me", TTL), LeaseRecord.of(lease())
    assert [candidate.may_take(result, at) for at in (100.0, 114.9, 115.0)] == [False, False, True]
    assert candidate.holder == "other"


def test_a_renewal_counts_whatever_time_it_contains() -> None:
    candidate = LeaseCandidate("me", TTL)
    assert not candidate.may_take(LeaseRecord.of(lease(renewed="2026-01-01T00:00:00.000000Z")), 100.0)
    assert not candidate.may_take(LeaseRecord.of(lease(renewed="1970-01-01T00:00:00.000000Z")), 114.0)
    assert not candidate.may_take(LeaseRecord.of(lease(renewed="1970-01-01T00:00:00.000000Z")), 128.9)
    assert candidate.may_take(LeaseRecord.of(lease(renewed="1970-01-01T00:00:00.000000Z")), 129.0)


@pytest.mark.parametrize(
    ("duration", "waits"),
    [(1, TTL), (0, TTL), (-(2**31), TTL), (20, 20.0), (2**31 - 1, LONGEST_DURATION), ("15", TTL), (True, TTL)],
)
def test_durations_are_clamped(duration: Any, waits: float) -> None:
    candidate, result = LeaseCandidate("me", TTL), LeaseRecord.of(lease(duration=duration))
    assert not candidate.may_take(result, 0.0)
    assert not candidate.may_take(result, waits - 0.01)
    assert candidate.may_take(result, waits)


@pytest.mark.parametrize("renewed", ["9999-12-31T23:59:59.000000Z", "", None, 5, {"a": []}, "x" * 10**6])
def test_no_renewal_time_keeps_a_lease_for_long(renewed: Any) -> None:
    candidate, result = LeaseCandidate("me", TTL), LeaseRecord.of(lease(renewed=renewed))
    assert not candidate.may_take(result, 0.0)
    assert candidate.may_take(result, TTL)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda each: st.dictionaries(
            st.sampled_from(["spec", "holderIdentity", "leaseDurationSeconds", "renewTime", "x"]), each
        ),
    )
)
def test_every_content_can_be_parsed(observed: Any) -> None:
    record = LeaseRecord.of(observed if isinstance(observed, dict) else {"spec": observed})
    candidate = LeaseCandidate("me", TTL)
    candidate.may_take(record, 0.0)
    assert candidate.may_take(record, LONGEST_DURATION)


def test_the_clock_advances_like_the_fastest_one_and_never_back() -> None:
    boot, day = [100.0], [5000.0]
    clock = FastestClock(lambda: boot[0], lambda: day[0])
    assert clock() == 0.0
    boot[0], day[0] = 101.0, 5001.0
    assert clock() == 1.0
    day[0] = 5061.0  # the virtual machine was paused
    assert clock() == 61.0
    boot[0], day[0] = 102.0, 4000.0  # the wall clock was set back
    assert clock() == 62.0
