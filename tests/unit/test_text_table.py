"""The table of strings has the entries that a dict would have, with any characters and in any number."""

from dynamo_shared.text_table import TextTable
from hypothesis import given
from hypothesis import strategies as st

KEYS = st.text(alphabet="ab./-\\n\n\té", max_size=3)
VALUES = st.text(max_size=5)
WRITES = st.lists(st.tuples(KEYS, st.none() | VALUES), max_size=200)


@given(WRITES)
def test_it_has_the_entries_that_a_dict_would_have(writes: list[tuple[str, str | None]]) -> None:
    table, expected = TextTable(), dict[str, str]()
    for key, value in writes:
        if value is None:
            assert table.pop(key) == (expected.pop(key, None) is not None)
        else:
            table.set(key, value)
            expected[key] = value
    assert (len(table), dict(table.items())) == (len(expected), expected)
    assert all(table.get(key) == expected.get(key) for key, _ in writes)


def test_splits_of_buckets_preserve_all_rows() -> None:
    table = TextTable()
    for number in range(10_000):
        table.set(f"tenant/graph-{number}", f"version {number}")
    assert len(table) == len(dict(table.items())) == 10_000
    assert all(table.get(f"tenant/graph-{number}") == f"version {number}" for number in range(10_000))
    assert table.get("tenant/graph") is None


def test_changes_do_not_affect_an_iteration() -> None:
    table = TextTable()
    for number in range(100):
        table.set(str(number), "before")
    items = {}
    for key, value in table.items():
        items[key] = value
        table.set(f"{key}-more", "after")
        table.pop(key)
    assert items == {str(number): "before" for number in range(100)}
