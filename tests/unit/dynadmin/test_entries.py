"""What is remembered of objects that are gone, and for a reader that is slow, is bounded in bytes, too."""

import msgspec
import pytest
from dynamo_dynadmin.state import entries, hub
from dynamo_dynadmin.state.entries import Entries, StoredObject
from dynamo_dynadmin.state.hub import Reader
from dynamo_shared.api.resources import DYNAMO_MODELS, ObjectKey
from dynamo_shared.state.versions import Version

LARGE = 1_000_000


def version(name: str) -> Version:
    return Version(f"uid-{name}", 1, "")


def deleted_in_turn(names: int, size: int) -> Entries:
    """Objects made and deleted one after the other, with sequences from 1 on."""
    known = Entries()
    for number in range(names):
        key = ObjectKey("ns", f"o{number}")
        known.take(key, 2 * number + 1, version(key.name), b"x" * size)
        known.take(key, 2 * number + 2, version(key.name), b"")
    return known


def test_deletions_of_large_objects_are_forgotten_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "DELETED_BYTES", 3 * LARGE)
    known = deleted_in_turn(5, LARGE)
    kept = known.since("ns", known.forgotten)
    assert [each.key.name for each in kept] == ["o2", "o3", "o4"]
    assert sum(len(each.last) for each in kept) == 3 * LARGE
    assert known.forgotten == 4


def test_an_object_that_is_created_again_is_no_longer_among_the_deletions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "DELETED_BYTES", 3 * LARGE)
    known = deleted_in_turn(3, LARGE)
    for number in range(10):
        key = ObjectKey("ns", "o0")
        known.take(key, 100 + 2 * number, version(key.name), b"x" * LARGE)
        known.take(key, 101 + 2 * number, version(key.name), b"")
    assert [each.key.name for each in known.since("ns", 0)] == ["o1", "o2", "o0"]
    assert known.forgotten == 0
    known.forget_deletions()
    known.take(ObjectKey("ns", "o9"), 200, version("o9"), b"x" * LARGE)
    known.take(ObjectKey("ns", "o9"), 201, version("o9"), b"")
    assert [each.key.name for each in known.since("ns", 0)] == ["o9"]


def test_a_slow_reader_must_begin_again_before_much_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "WAITING_BYTES", 3 * LARGE)
    reader = Reader(DYNAMO_MODELS, "ns")

    def offer(number: int) -> None:
        reader.offer(StoredObject(ObjectKey("ns", "o"), number, version("o"), b"x" * LARGE))

    for number in range(3):
        offer(number)
    assert len(reader.taken()) == 3
    for number in range(3):
        offer(number)
    assert not reader.lost
    offer(3)
    assert reader.lost
    offer(4)
    assert reader.taken() == []


def test_an_outline_has_the_metadata_that_relate_objects() -> None:
    owners = [{"kind": "ReplicaSet", "name": "set", "uid": "u-set"}]
    metadata = {"name": "pod", "uid": "u", "labels": {"a": "b"}, "ownerReferences": owners}
    pod = {"metadata": {**metadata, "annotations": {"c": "d"}}, "spec": {"containers": [{"name": "main"}]}}
    stored = StoredObject(ObjectKey("ns", "pod"), 1, version("pod"), msgspec.json.encode(pod))
    assert stored.outline == {"metadata": metadata}
    assert StoredObject(ObjectKey("ns", "x"), 1, version("x"), b"{}").outline == {"metadata": {}}
