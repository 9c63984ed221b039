"""The last reported versions by key."""

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.kube.known import Known
from hypothesis import given
from hypothesis import strategies as st

NAMES = st.text(alphabet="abc.-:0\n\t", max_size=12)
KEYS = st.builds(ObjectKey, NAMES, NAMES)
TEXTS = st.text(alphabet="abc-0", max_size=12)


@given(st.dictionaries(KEYS, st.tuples(st.text(), TEXTS)), st.sets(KEYS))
def test_recorded_versions_are_read_back(versions: dict[ObjectKey, tuple[str, str]], present: set[ObjectKey]) -> None:
    known = Known()
    for key, (uid, version) in versions.items():
        known.remember(key, "before", "1")
        known.remember(key, uid, version)
    assert dict(known) == versions
    assert set(known.others(present)) == {(key, uid) for key, (uid, _) in versions.items() if key not in present}
    for key in versions:
        assert known.forget(key)
        assert not known.forget(key)
        assert known.get(key) is None
    assert len(known) == 0
