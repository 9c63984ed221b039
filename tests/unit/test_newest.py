"""What a bounded dictionary keeps."""

from dynamo_shared.newest import Newest


def test_what_was_set_or_used_longest_ago_makes_room() -> None:
    entries: Newest[str, int] = Newest(3)
    entries.update(a=1, b=2, c=3)
    entries["a"] = 4
    assert (entries.used("b"), entries.get("c"), entries.used("d")) == (2, 3, None)
    entries["d"] = 5
    assert dict(entries) == {"a": 4, "b": 2, "d": 5}
