"""The object cache: what it takes in, what it refuses, what it can be asked."""

from __future__ import annotations

from typing import Any

from dynamo_shared.api.resources import DEPLOYMENTS, SERVICES, ObjectKey
from dynamo_shared.bus import ObjectCache

KEY = ObjectKey("ns", "a")


def obj(version: int, *, uid: str = "u1", name: str = "a", namespace: str = "ns", app: str = "x") -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": app},
        }
    }


def by_app(found: dict[str, Any]) -> list[str]:
    return [found["metadata"]["labels"]["app"]]


def test_only_newer_versions_get_in() -> None:
    cache = ObjectCache()
    assert cache.put(DEPLOYMENTS, obj(9))
    assert cache.put(DEPLOYMENTS, obj(10))
    assert not cache.put(DEPLOYMENTS, obj(10))
    assert not cache.put(DEPLOYMENTS, obj(9))
    assert cache.get(DEPLOYMENTS, KEY) == obj(10)
    assert cache.get(SERVICES, KEY) is None


def test_a_late_answer_does_not_bring_back_what_is_deleted() -> None:
    cache = ObjectCache()
    cache.put(DEPLOYMENTS, obj(10))
    assert cache.remove(DEPLOYMENTS, KEY, "u1", 11)
    assert not cache.put(DEPLOYMENTS, obj(10))
    # Also where the answer belongs to a later version than the one seen last.
    assert not cache.put(DEPLOYMENTS, obj(12))
    assert cache.put(DEPLOYMENTS, obj(13, uid="u2"))


def test_a_tombstone_of_an_earlier_object_leaves_the_new_one() -> None:
    cache = ObjectCache()
    cache.put(DEPLOYMENTS, obj(20, uid="u2"))
    assert not cache.remove(DEPLOYMENTS, KEY, "u1", 15)
    assert cache.get(DEPLOYMENTS, KEY) is not None
    assert cache.remove(DEPLOYMENTS, KEY)
    assert not cache.remove(DEPLOYMENTS, KEY)


def test_lists() -> None:
    cache = ObjectCache()
    for name, namespace in [("a", "n1"), ("b", "n1"), ("a", "n2")]:
        cache.put(DEPLOYMENTS, obj(1, uid=name + namespace, name=name, namespace=namespace))
    assert len(cache.list(DEPLOYMENTS)) == cache.count(DEPLOYMENTS) == 3
    assert [found["metadata"]["name"] for found in cache.list(DEPLOYMENTS, "n1")] == ["a", "b"]
    assert cache.list(DEPLOYMENTS, "n3") == cache.list(SERVICES) == []
    assert cache.keys(DEPLOYMENTS) == {ObjectKey("n1", "a"), ObjectKey("n1", "b"), ObjectKey("n2", "a")}


def test_indexes_follow_changes_and_take_in_what_is_there() -> None:
    cache = ObjectCache()
    cache.put(DEPLOYMENTS, obj(1))
    cache.add_index(DEPLOYMENTS, "app", by_app)
    assert cache.by_index(DEPLOYMENTS, "app", "x") == [obj(1)]
    cache.put(DEPLOYMENTS, obj(2, app="y"))
    assert cache.by_index(DEPLOYMENTS, "app", "x") == []
    assert cache.by_index(DEPLOYMENTS, "app", "y") == [obj(2, app="y")]
    cache.remove(DEPLOYMENTS, KEY)
    assert cache.by_index(DEPLOYMENTS, "app", "y") == []


def test_listeners_hear_of_what_changed_and_one_that_fails_harms_nobody() -> None:
    cache, heard = ObjectCache(), []

    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    cache.on_change(broken)
    cache.on_change(lambda resource, key, old, new: heard.append((resource.id, key, old, new)))
    cache.put(DEPLOYMENTS, obj(1))
    cache.put(DEPLOYMENTS, obj(1))
    cache.remove(DEPLOYMENTS, KEY)
    assert heard == [("deployments.apps", KEY, None, obj(1)), ("deployments.apps", KEY, obj(1), None)]


def test_of_large_objects_only_what_is_read_is_kept() -> None:
    cache = ObjectCache()
    heard: list[Any] = []
    cache.on_change(lambda _resource, _key, old, new: heard.append((old, new)))
    cache.keep_only(DEPLOYMENTS, lambda found: {"metadata": found["metadata"]})
    cache.add_index(DEPLOYMENTS, "app", by_app)
    cache.put(DEPLOYMENTS, obj(1) | {"spec": {"replicas": 1}})
    cache.put(DEPLOYMENTS, obj(2) | {"spec": {"replicas": 2}})
    cache.put(SERVICES, obj(1) | {"spec": {}})
    assert cache.by_index(DEPLOYMENTS, "app", "x") == [obj(2)]
    assert heard[:2] == [(None, obj(1)), (obj(1), obj(2))]
    assert cache.get(SERVICES, KEY) == obj(1) | {"spec": {}}
