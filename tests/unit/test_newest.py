"""What a bounded dictionary keeps."""

from dynamo_shared.newest import Newest, NewestOfLanes


def test_what_was_set_or_used_longest_ago_makes_room() -> None:
    entries: Newest[str, int] = Newest(3)
    entries.update(a=1, b=2, c=3)
    entries["a"] = 4
    assert (entries.used("b"), entries.get("c"), entries.used("d")) == (2, 3, None)
    entries["d"] = 5
    assert dict(entries) == {"a": 4, "b": 2, "d": 5}


def test_the_lane_with_the_most_entries_forgets_its_oldest() -> None:
    entries: NewestOfLanes[str, int] = NewestOfLanes(4)
    entries.put("quiet", "old", 1)
    for number in range(9):
        entries.put("tenant", str(number), number)
        entries.used("tenant", "0")
    assert (entries.get("quiet", "old"), sorted(entries.values())) == (1, [0, 1, 7, 8])
    entries.pop("tenant", "0")
    entries.put("tenant", "8", 9)
    assert (entries.get("tenant", "0"), entries.used("other", "8"), list(entries.values())) == (None, None, [1, 7, 9])
