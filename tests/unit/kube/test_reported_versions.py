"""The last reported versions by key."""

import asyncio

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.kube.reported_versions import ReportedVersions
from hypothesis import given
from hypothesis import strategies as st

from tests.building.waiting import with_turns

NAMES = st.text(alphabet="abc.-:0\n\t", max_size=12)
KEYS = st.builds(ObjectKey, NAMES, NAMES)
TEXTS = st.text(alphabet="abc-0", max_size=12)


@given(st.dictionaries(KEYS, st.tuples(st.text(), TEXTS)), st.sets(KEYS))
def test_recorded_versions_are_read_back(versions: dict[ObjectKey, tuple[str, str]], present: set[ObjectKey]) -> None:
    known = ReportedVersions()
    for key, (uid, version) in versions.items():
        known.remember(key, "before", "1")
        known.remember(key, uid, version)
    assert dict(known) == versions
    others = asyncio.run(known.others(present))
    assert set(others) == {(key, uid) for key, (uid, _) in versions.items() if key not in present}
    for key in versions:
        assert known.forget(key)
        assert not known.forget(key)
        assert known.get(key) is None
    assert len(known) == 0


async def test_other_tasks_run_while_many_objects_are_compared() -> None:
    """A hundred thousand objects took a third of a second at each comparison."""
    known, keys = ReportedVersions(), [ObjectKey("ns", str(number)) for number in range(10_000)]
    for key in keys:
        known.remember(key, f"uid-{key.name}", "1")
    others, turns = await with_turns(known.others(set(keys[1:])))
    assert others == [(keys[0], "uid-0")]
    assert turns >= 9
