"""Keys fall into partitions and partitions to members alike everywhere, and few move when members change."""

from __future__ import annotations

from collections import Counter

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.leases.rendezvous import PARTITIONS, best_member, partition_of
from hypothesis import given
from hypothesis import strategies as st

MEMBERS = st.sets(st.text("abcdefgh-0123456789", min_size=1, max_size=12), min_size=1, max_size=8)


def test_places_never_change() -> None:
    # Pinned: with another answer, replicas of two versions would work on the same key during an update.
    assert PARTITIONS == 32
    assert [partition_of(ObjectKey("default", f"graph-{n}")) for n in range(6)] == [5, 18, 9, 19, 11, 17]
    assert partition_of(ObjectKey("", "default")) == 12
    assert [best_member(n, ["a", "b", "c"]) for n in range(8)] == ["b", "c", "a", "a", "b", "b", "b", "a"]


def test_no_one_is_best_among_no_one() -> None:
    assert best_member(3, []) is None


def test_keys_spread_over_all_partitions() -> None:
    counts = Counter(partition_of(ObjectKey(f"ns-{n % 7}", f"graph-{n}")) for n in range(32_000))
    assert len(counts) == PARTITIONS
    assert 800 < min(counts.values()) <= max(counts.values()) < 1200


@given(MEMBERS)
def test_the_order_of_members_does_not_matter(members: set[str]) -> None:
    for partition in range(PARTITIONS):
        assert best_member(partition, sorted(members)) == best_member(partition, sorted(members, reverse=True))


@given(MEMBERS, st.data())
def test_one_that_goes_leaves_the_others_partitions_alone(members: set[str], data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(sorted(members)))
    for partition in range(PARTITIONS):
        before, after = best_member(partition, members), best_member(partition, members - {gone})
        assert before in {after, gone}


@given(MEMBERS, st.text("xyz", min_size=1, max_size=5))
def test_one_that_comes_only_takes(members: set[str], comes: str) -> None:
    for partition in range(PARTITIONS):
        before, after = best_member(partition, members), best_member(partition, members | {comes})
        assert after in {before, comes}
