"""Which entries a dictionary of limited size evicts."""

from dynamo_shared.lru import LaneLruCache, LruCache


def test_the_least_recently_used_entry_is_evicted() -> None:
    entries: LruCache[str, int] = LruCache(3)
    entries.update(a=1, b=2, c=3)
    entries["a"] = 4
    assert (entries.touch("b"), entries.get("c"), entries.touch("d")) == (2, 3, None)
    entries["d"] = 5
    assert dict(entries) == {"a": 4, "b": 2, "d": 5}


def test_the_largest_lane_evicts_its_least_recently_used_entry() -> None:
    entries: LaneLruCache[str, int] = LaneLruCache(4)
    entries.put("quiet", "old", 1)
    for number in range(9):
        entries.put("tenant", str(number), number)
        entries.touch("tenant", "0")
    assert (entries.get("quiet", "old"), sorted(entries.values())) == (1, [0, 1, 7, 8])
    entries.pop("tenant", "0")
    entries.put("tenant", "8", 9)
    assert (entries.get("tenant", "0"), entries.touch("other", "8"), list(entries.values())) == (None, None, [1, 7, 9])
