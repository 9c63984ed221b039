"""All replicas map keys to partitions and partitions to members in the same way, and few move when members change."""

from collections import Counter

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.leases.rendezvous import PARTITIONS, SCHEME, best_member, candidates, partition_of
from hypothesis import given
from hypothesis import strategies as st

#: Of the namespaces team-0 to team-5.
PLACES = [28, 16, 28, 27, 22, 0]
MEMBERS = st.sets(st.text("abcdefgh-0123456789", min_size=1, max_size=12), min_size=1, max_size=8)


def test_partitions_of_keys_never_change() -> None:
    # Pinned: otherwise replicas of two versions would work on the same key during an update.
    assert PARTITIONS == 32
    assert [partition_of(ObjectKey(f"team-{n}", "graph")) for n in range(6)] == PLACES
    assert partition_of(ObjectKey("", "default")) == 12
    assert [best_member(n, ["a", "b", "c"]) for n in range(8)] == ["b", "c", "a", "a", "b", "b", "b", "a"]


@given(st.text("abc-", min_size=1, max_size=8), st.text("abc-", min_size=1, max_size=8))
def test_a_namespace_is_in_one_partition(namespace: str, name: str) -> None:
    assert partition_of(ObjectKey(namespace, name)) == partition_of(ObjectKey("", namespace))


def test_partitions_are_spread_over_all_members_of_this_release() -> None:
    assert list(candidates({"a": {"version": "1", **SCHEME}, "b": {**SCHEME}})) == ["a", "b"]
    assert list(candidates({})) == []


def test_members_of_an_earlier_release_have_all_partitions_while_they_exist() -> None:
    """Their keys are in other partitions, so a key would have two owners."""
    assert list(candidates({"old": {"version": "0.1.0"}, "new": {**SCHEME}, "unreadable": {}})) == ["old", "unreadable"]


def test_without_members_there_is_no_owner() -> None:
    assert best_member(3, []) is None


def test_keys_spread_over_all_partitions() -> None:
    counts = Counter(partition_of(ObjectKey(f"ns-{n}", "graph")) for n in range(32_000))
    assert len(counts) == PARTITIONS
    assert 800 < min(counts.values()) <= max(counts.values()) < 1200


@given(MEMBERS)
def test_the_order_of_members_does_not_matter(members: set[str]) -> None:
    for partition in range(PARTITIONS):
        assert best_member(partition, sorted(members)) == best_member(partition, sorted(members, reverse=True))


@given(MEMBERS, st.data())
def test_a_member_that_leaves_does_not_move_partitions_of_others(members: set[str], data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(sorted(members)))
    for partition in range(PARTITIONS):
        before, after = best_member(partition, members), best_member(partition, members - {gone})
        assert before in {after, gone}


@given(MEMBERS, st.text("xyz", min_size=1, max_size=5))
def test_a_new_member_only_takes_partitions(members: set[str], comes: str) -> None:
    for partition in range(PARTITIONS):
        before, after = best_member(partition, members), best_member(partition, members | {comes})
        assert after in {before, comes}
