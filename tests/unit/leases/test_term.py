"""The local deadline of a lease is never later than the server's."""

from dynamo_shared.leases.term import Term, lease_clock, margin
from hypothesis import given
from hypothesis import strategies as st

TIMES = st.floats(0, 1e6)
TTLS = st.integers(2, 600)


def test_trusted_until_the_margin() -> None:
    term = Term.granted(7, 10, sent=100.0)
    assert term.alive(107.9)
    assert not term.alive(108.0)
    assert term.renewed(10, sent=103.0).alive(110.9)


def test_short_leases_keep_a_second() -> None:
    assert margin(2) == 1.0
    assert margin(0.5) == 0.5
    assert not Term.granted(7, 0.5, sent=0.0).alive(0.0)


def test_a_late_answer_does_not_shorten_the_term() -> None:
    term = Term.granted(7, 10, sent=0.0).renewed(10, sent=5.0)
    assert term.renewed(10, sent=3.0).deadline == term.deadline


def test_two_keepalives_may_fail() -> None:
    term = Term.granted(7, 10, sent=0.0)
    assert term.alive(2 * term.keepalive_every)


@given(TTLS, TIMES, st.floats(0, 30), st.floats(0, 30))
def test_the_term_ends_before_the_server_ends_the_lease(
    ttl: int, sent: float, way_there: float, way_back: float
) -> None:
    term = Term.granted(1, ttl, sent)
    server_ends = sent + way_there + ttl
    assert not term.alive(server_ends - 1.0)
    assert not term.alive(sent + way_there + way_back + ttl)


def test_time_continues_to_count() -> None:
    first = lease_clock()
    assert lease_clock() >= first
