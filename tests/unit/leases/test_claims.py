"""The partitions that are claimed, drained and released, case by case."""

from dynamo_shared.leases.claims import Claim, ClaimDecision, Claims
from dynamo_shared.leases.rendezvous import best_member

LEASE, OTHER = 7, 8
BOTH = ("a", "b")
MINE = [n for n in range(8) if best_member(n, BOTH) == "a"]
THEIRS = [n for n in range(8) if best_member(n, BOTH) == "b"]
ALL = {n: Claim(LEASE, 100 + n) for n in range(8)}


def alone() -> Claims:
    """Replica `a`, which holds all eight partitions."""
    claims = Claims("a", 8)
    claims.observe(LEASE, ("a",), ALL)
    return claims


def nothing(decision: ClaimDecision) -> bool:
    return not any((decision.gained, decision.lost, decision.claim, decision.drain, decision.release))


def test_a_replica_claims_its_free_partitions() -> None:
    claims = Claims("a", 8)
    decision = claims.observe(LEASE, BOTH, {MINE[0]: Claim(OTHER, 1)})
    assert list(decision.claim) == MINE[1:]
    assert not claims.held(LEASE), "asked for is not got"


def test_partitions_that_etcd_assigns_to_the_replica_are_owned() -> None:
    claims = Claims("a", 8)
    decision = claims.observe(LEASE, ("a",), ALL)
    assert decision.gained == frozenset(range(8)) == claims.held(LEASE)
    assert nothing(claims.observe(LEASE, ("a",), ALL))


def test_without_a_lease_nothing_is_held_or_claimed() -> None:
    claims = alone()
    assert not claims.held(0)
    assert not claims.held(OTHER)
    decision = claims.observe(0, ("a",), {})
    assert decision.lost == decision.cut_off == frozenset(range(8))
    assert not decision.claim


def test_work_on_a_partition_is_cut_off_if_its_claim_ends_during_its_drain() -> None:
    claims = alone()
    assert not claims.observe(LEASE, BOTH, ALL).cut_off, "its work may end by itself"
    decision = claims.observe(LEASE, BOTH, {n: ALL[n] for n in MINE})
    assert decision.cut_off == frozenset(THEIRS)
    assert not decision.lost, "no new work could begin since the drain began"


def test_a_released_partition_has_no_work_to_cut_off() -> None:
    claims = alone()
    for drain in claims.observe(LEASE, BOTH, ALL).drain:
        claims.drained(drain)
    assert not claims.observe(LEASE, BOTH, {n: ALL[n] for n in MINE}).cut_off


def test_an_unregistered_replica_neither_claims_nor_releases() -> None:
    assert nothing(Claims("a", 8).observe(LEASE, ("b",), {}))
    assert nothing(alone().observe(LEASE, ("b",), ALL))


def test_a_partition_is_released_after_its_drain() -> None:
    claims = alone()
    decision = claims.observe(LEASE, BOTH, ALL)
    assert [drain.partition for drain in decision.drain] == THEIRS
    assert decision.lost == frozenset(THEIRS)
    assert not decision.release
    assert nothing(claims.observe(LEASE, BOTH, ALL)), "it is drained once"
    assert claims.drained(decision.drain[0])
    released = ((THEIRS[0], ALL[THEIRS[0]]),)
    assert claims.observe(LEASE, BOTH, ALL).release == released
    assert claims.observe(LEASE, BOTH, ALL).release == released, "until it is gone"
    left = {n: claim for n, claim in ALL.items() if n != THEIRS[0]}
    assert nothing(claims.observe(LEASE, BOTH, left))


def test_a_drain_is_cancelled_if_the_other_replica_leaves() -> None:
    claims = alone()
    first = claims.observe(LEASE, BOTH, ALL).drain[0]
    assert claims.observe(LEASE, ("a",), ALL).gained == frozenset(THEIRS)
    assert not claims.drained(first)
    again = claims.observe(LEASE, BOTH, ALL).drain[0]
    assert not claims.drained(first), "work has begun since that drain"
    assert claims.drained(again)


def test_a_release_is_never_cancelled() -> None:
    claims = alone()
    drain = claims.observe(LEASE, BOTH, ALL).drain[0]
    claims.drained(drain)
    decision = claims.observe(LEASE, ("a",), ALL)
    assert drain.partition not in claims.held(LEASE), "the deletion may be on its way"
    assert drain.partition in dict(decision.release)
    left = {n: claim for n, claim in ALL.items() if n != drain.partition}
    assert claims.observe(LEASE, ("a",), left).claim == (drain.partition,)
    new = left | {drain.partition: Claim(LEASE, 500)}
    assert claims.observe(LEASE, ("a",), new).gained == {drain.partition}


def test_a_deleted_claim_is_lost_and_claimed_again() -> None:
    claims = alone()
    decision = claims.observe(LEASE, ("a",), {n: claim for n, claim in ALL.items() if n != 3})
    assert decision.lost == {3}
    assert decision.claim == (3,)


def test_a_claim_that_was_recreated_meanwhile_is_another_claim() -> None:
    claims = alone()
    drain = claims.observe(LEASE, BOTH, ALL).drain[0]
    claims.observe(LEASE, BOTH, ALL | {drain.partition: Claim(LEASE, 900)})
    assert not claims.drained(drain)


def test_drop_returns_the_partitions_with_work_in_progress() -> None:
    claims = alone()
    drains = claims.observe(LEASE, BOTH, ALL).drain
    claims.drained(drains[0])
    assert claims.drop() == frozenset(range(8)) - {drains[0].partition}
    assert not claims.held(LEASE)
    assert not claims.drop()


def test_the_needed_partitions_include_draining_ones() -> None:
    claims = alone()
    assert claims.kept(LEASE) == frozenset(ALL)
    drain = claims.observe(LEASE, BOTH, ALL).drain
    assert claims.kept(LEASE) == frozenset(ALL), "work is under way"
    for each in drain:
        claims.drained(each)
    assert claims.kept(LEASE) == frozenset(MINE)
    assert not claims.kept(0)


def test_a_replica_releases_everything_if_only_earlier_releases_may_have_partitions() -> None:
    claims = alone()
    decision = claims.observe(LEASE, BOTH, ALL, candidates=("b",))
    assert {drain.partition for drain in decision.drain} == set(ALL)
    assert not Claims("a", 8).observe(LEASE, BOTH, {}, candidates=("b",)).claim, "nor does it claim what is free"
