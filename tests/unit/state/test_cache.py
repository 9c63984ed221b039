"""The object cache: what it accepts, what it rejects, and its queries."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DEPLOYMENTS, PODS, SERVICES, ObjectKey, Resource, key_of
from dynamo_shared.state import ObjectCache
from dynamo_shared.state.cache import GRACE, READ_AT_A_TIME, OwnWrite
from dynamo_shared.state.memory import ObjectMemory
from dynamo_shared.state.table import FEW
from dynamo_shared.state.versions import Version, resource_version, version_of

from tests.building.clock import ManualClock

KEY = ObjectKey("ns", "a")


def obj(version: int, *, uid: str = "u1", name: str = "a", namespace: str = "ns", app: str = "x") -> dict[str, Any]:
    return {
        **DEPLOYMENTS.type_meta,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": app},
        },
    }


def by_app(obj: dict[str, Any]) -> list[str]:
    return [obj["metadata"]["labels"]["app"]]


def said(cache: ObjectCache, obj: dict[str, Any]) -> bool:
    """A message of STATE with this object."""
    return cache.take(DEPLOYMENTS, KEY, obj, version_of(obj))


def ended(cache: ObjectCache, version: int, uid: str = "u1") -> bool:
    """A message of STATE that the object was deleted."""
    return cache.take(DEPLOYMENTS, KEY, None, Version(uid, version, ""))


def held(cache: ObjectCache) -> str | None:
    observed = cache.get(DEPLOYMENTS, KEY)
    return f"{observed['metadata']['uid']}-{observed['metadata']['resourceVersion']}" if observed else None


async def test_others_run_while_thousands_of_objects_of_one_value_are_read() -> None:
    """A tenant's 10,000 pods with the labels of one component kept every other task waiting, at each read."""
    cache, names = ObjectCache(), [f"p{number}" for number in range(3 * READ_AT_A_TIME)]
    cache.add_index(DEPLOYMENTS, "app", by_app)
    for name in names:
        cache.put(DEPLOYMENTS, obj(1, name=name, uid=name))
    reading = asyncio.create_task(cache.read_by_index(DEPLOYMENTS, "app", "x"))
    await asyncio.sleep(0)
    cache.remove(DEPLOYMENTS, ObjectKey("ns", names[-1]), names[-1])
    assert not reading.done()
    assert [each["metadata"]["name"] for each in await reading] == names[:-1]


def test_a_deletion_is_reported_if_a_successor_of_the_same_name_arrives() -> None:
    # If the watcher was away, or a service read the object: STATE has only the newest object of a name.
    cache = ObjectCache()
    changes: list[Any] = []

    def note(_: Resource, __: ObjectKey, old: KubeObject | None, new: KubeObject | None) -> None:
        changes.append(tuple(each and each["metadata"]["uid"] for each in (old, new)))
        assert cache.get(DEPLOYMENTS, KEY) == new

    cache.on_change(note)
    cache.put(DEPLOYMENTS, obj(1))
    assert said(cache, obj(7, uid="u2"))
    assert cache.put(DEPLOYMENTS, obj(9, uid="u3"))
    assert changes == [(None, "u1"), ("u1", None), (None, "u2"), ("u2", None), (None, "u3")]


def test_only_newer_answers_to_writes_are_accepted() -> None:
    cache = ObjectCache()
    assert cache.put(DEPLOYMENTS, obj(9))
    assert cache.put(DEPLOYMENTS, obj(10))
    assert not cache.put(DEPLOYMENTS, obj(10))
    assert not cache.put(DEPLOYMENTS, obj(9))
    assert cache.get(DEPLOYMENTS, KEY) == obj(10)
    assert cache.get(SERVICES, KEY) is None


def test_messages_of_state_count_in_their_order() -> None:
    """A forged version and a restored data store need no special rule."""
    cache = ObjectCache()
    for each, expected in (
        (obj(10), "u1-10"),
        (obj(2**60), f"u1-{2**60}"),
        (obj(11), "u1-11"),
        (obj(3), "u1-3"),
        (obj(1, uid="u2"), "u2-1"),
        (obj(12), "u1-12"),
    ):
        assert said(cache, each)
        assert held(cache) == expected
    assert not said(cache, obj(12))
    assert ended(cache, 5)
    assert held(cache) is None
    # From a backup: the same uid exists again.
    assert said(cache, obj(4))
    assert held(cache) == "u1-4"


def test_a_write_is_not_replaced_by_older_messages_of_state() -> None:
    cache = ObjectCache()
    said(cache, obj(10))
    cache.put(DEPLOYMENTS, obj(20))
    assert not said(cache, obj(15))
    assert held(cache) == "u1-20"
    assert not said(cache, obj(20))
    assert said(cache, obj(19)), "STATE has caught up, and what it says then counts"


def test_an_answer_is_this_services_until_state_confirms_it() -> None:
    cache = ObjectCache()
    own: list[bool] = []
    cache.on_change(lambda resource, _key, _old, new: own.append(new is not None and cache.is_answer(resource, new)))
    said(cache, obj(10))
    cache.put(DEPLOYMENTS, obj(20))
    said(cache, obj(30))
    assert own == [False, True, False]
    cache.put(DEPLOYMENTS, obj(40))
    assert not cache.is_answer(DEPLOYMENTS, obj(50))
    cache.confirm(DEPLOYMENTS, KEY, version_of(obj(40)))
    assert not cache.is_answer(DEPLOYMENTS, obj(40))


def test_only_the_last_unconfirmed_write_is_confirmed() -> None:
    clock = ManualClock()
    cache = ObjectCache(clock=clock)
    said(cache, obj(10))
    assert not cache.confirm(DEPLOYMENTS, KEY, version_of(obj(10))), "STATE itself said it: a correction may follow"
    cache.put(DEPLOYMENTS, obj(20))
    for other in (obj(15), obj(21), obj(20, uid="u2")):
        assert not cache.confirm(DEPLOYMENTS, KEY, version_of(other))
    assert not cache.confirm(SERVICES, KEY, version_of(obj(20)))
    assert not said(cache, obj(15))
    assert cache.confirm(DEPLOYMENTS, KEY, version_of(obj(20)))
    assert held(cache) == "u1-20"
    clock.now = 2 * GRACE
    assert cache.overdue() == [], "the older word does not come after it"
    assert not cache.confirm(DEPLOYMENTS, KEY, version_of(obj(20))), "once"
    assert said(cache, obj(19)), "STATE has caught up, and what it says then counts"


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda cache: cache.confirm(DEPLOYMENTS, KEY, version_of(obj(20))), id="STATE confirms it"),
        pytest.param(lambda cache: said(cache, obj(21)), id="STATE has a newer version"),
        pytest.param(lambda cache: ended(cache, 21), id="STATE has the deletion"),
        pytest.param(lambda cache: cache.remove(DEPLOYMENTS, KEY, "u1"), id="this service deletes it"),
        pytest.param(lambda cache: cache.forget(DEPLOYMENTS, [KEY]), id="another replica handles it"),
    ],
)
async def test_writes_so_far_are_awaited(end: Callable[[ObjectCache], object]) -> None:
    cache = ObjectCache()
    await cache.confirmed()
    for name in ("a", "b"):
        cache.put(DEPLOYMENTS, obj(20, uid="u1" if name == "a" else "u2", name=name))
    waiting = asyncio.create_task(cache.confirmed())
    await asyncio.sleep(0)
    cache.put(DEPLOYMENTS, obj(20, uid="u3", name="later"))
    cache.confirm(DEPLOYMENTS, ObjectKey("ns", "b"), version_of(obj(20, uid="u2")))
    assert not said(cache, obj(15)), "older than the write"
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()
    end(cache)
    async with asyncio.timeout(10):
        await waiting


def test_if_state_lags_behind_the_api_server_decides() -> None:
    """The data store was restored after the write; or the watcher is away, and the reader reads an old message."""
    for there, expected in ((obj(9), "u1-9"), (obj(20), "u1-20")):
        clock = ManualClock()
        cache = ObjectCache(clock=clock)
        cache.put(DEPLOYMENTS, obj(20))
        clock.now = 1.0
        said(cache, obj(8))
        said(cache, obj(9))
        clock.now = GRACE - 1
        assert cache.overdue() == []
        clock.now = GRACE
        ((_, write),) = cache.overdue()
        clock.now = 2 * GRACE - 1
        assert (held(cache), cache.overdue()) == ("u1-20", []), "time alone proves nothing"
        cache.correct(KEY, write, there)
        assert held(cache) == expected


def overdue(clock: ManualClock) -> tuple[ObjectCache, OwnWrite]:
    """A cache with a write that STATE has not confirmed in time."""
    cache = ObjectCache(clock=clock)
    said(cache, obj(10))
    cache.put(DEPLOYMENTS, obj(20))
    clock.now = GRACE - 1
    assert cache.overdue() == []
    clock.now = GRACE
    ((key, write),) = cache.overdue()
    assert (key, write.resource, write.version) == (KEY, DEPLOYMENTS, version_of(obj(20)))
    assert cache.overdue() == [], "until another time of grace is over"
    return cache, write


def test_a_write_that_the_data_store_lost_is_given_up() -> None:
    cache, write = overdue(ManualClock())
    changes: list[tuple[KubeObject | None, KubeObject | None]] = []
    cache.on_change(lambda _resource, _key, old, new: changes.append((old, new)))
    assert cache.correct(KEY, write, obj(10))
    assert held(cache) == "u1-10"
    assert changes == [(obj(20), obj(10))]
    assert cache.put(DEPLOYMENTS, obj(12)), "the next write counts from there"


def test_an_object_that_the_data_store_lost_is_removed() -> None:
    cache, write = overdue(ManualClock())
    assert cache.correct(KEY, write, None)
    assert cache.get(DEPLOYMENTS, KEY) is None


def test_an_existing_write_waits_for_state() -> None:
    clock = ManualClock()
    cache, write = overdue(clock)
    assert not cache.correct(KEY, write, obj(20))
    clock.now = 2 * GRACE
    assert len(cache.overdue()) == 1
    assert cache.confirm(DEPLOYMENTS, KEY, version_of(obj(20)))
    clock.now = 3 * GRACE
    assert cache.overdue() == []


def test_a_later_write_of_another_client_counts_and_older_messages_of_state_do_not() -> None:
    cache, write = overdue(ManualClock())
    own: list[bool] = []
    cache.on_change(lambda resource, _key, _old, new: own.append(new is not None and cache.is_answer(resource, new)))
    assert cache.correct(KEY, write, obj(25))
    assert (held(cache), own) == ("u1-25", [False])
    assert not said(cache, obj(20))
    assert held(cache) == "u1-25"


@pytest.mark.parametrize("faster", ["STATE", "another write"])
def test_an_answer_about_a_write_is_outdated_if_a_message_arrived_meanwhile(faster: str) -> None:
    cache, write = overdue(ManualClock())
    newer = obj(30)
    assert said(cache, newer) if faster == "STATE" else cache.put(DEPLOYMENTS, newer)
    assert not cache.correct(KEY, write, obj(10))
    assert held(cache) == "u1-30"


def test_a_late_answer_does_not_restore_a_deleted_object() -> None:
    cache = ObjectCache()
    cache.put(DEPLOYMENTS, obj(10))
    assert ended(cache, 11)
    assert not cache.put(DEPLOYMENTS, obj(10))
    # Also if the answer has a later version than the last observed one.
    assert not cache.put(DEPLOYMENTS, obj(12))
    assert cache.put(DEPLOYMENTS, obj(13, uid="u2"))


@pytest.mark.parametrize(
    ("there", "expected"), [(obj(9), "u1-9"), (obj(12, uid="u2"), "u2-12"), (None, None)], ids=["back", "next", "gone"]
)
def test_an_object_that_a_writer_reported_gone_returns_only_if_the_api_server_has_it(
    there: KubeObject | None, expected: str | None
) -> None:
    """STATE may keep it for long: its watcher is away, and each read returns it again."""
    clock = ManualClock()
    cache = ObjectCache(clock=clock)
    said(cache, obj(10))
    assert cache.remove(DEPLOYMENTS, KEY, "u1")
    assert not cache.remove(DEPLOYMENTS, KEY, "u1")
    assert not said(cache, obj(9)), "it was on its way already"
    clock.now = GRACE
    ((key, word),) = cache.overdue()
    assert (key, cache.overdue(), held(cache)) == (KEY, [], None)
    cache.correct(KEY, word, there)
    assert held(cache) == expected
    clock.now = 3 * GRACE
    assert cache.overdue() == []
    assert not said(cache, obj(9))
    assert held(cache) == expected


def test_a_tombstone_of_a_predecessor_does_not_remove_the_written_object() -> None:
    cache = ObjectCache()
    cache.put(DEPLOYMENTS, obj(20, uid="u2"))
    assert not ended(cache, 15, uid="u1")
    assert held(cache) == "u2-20"
    assert not cache.remove(DEPLOYMENTS, KEY, "u1")
    assert ended(cache, 15, uid="u2"), "the end of what was written is final"


def test_a_failing_index_changes_nothing() -> None:
    cache = ObjectCache()
    cache.add_index(DEPLOYMENTS, "app", by_app)
    cache.add_index(DEPLOYMENTS, "bad", lambda each: each["metadata"]["labels"]["app"].split() or [1 / 0])
    cache.put(DEPLOYMENTS, obj(1))
    with pytest.raises(ZeroDivisionError):
        cache.put(DEPLOYMENTS, obj(2, app=""))
    assert cache.by_index(DEPLOYMENTS, "app", "x") == [obj(1)]


def test_lists() -> None:
    cache = ObjectCache()
    for name, namespace in [("a", "n1"), ("b", "n1"), ("a", "n2")]:
        cache.put(DEPLOYMENTS, obj(1, uid=name + namespace, name=name, namespace=namespace))
    assert len(cache.list(DEPLOYMENTS)) == cache.count(DEPLOYMENTS) == 3
    assert [each["metadata"]["name"] for each in cache.list(DEPLOYMENTS, "n1")] == ["a", "b"]
    assert cache.list(DEPLOYMENTS, "n3") == cache.list(SERVICES) == []
    assert cache.keys(DEPLOYMENTS) == {ObjectKey("n1", "a"), ObjectKey("n1", "b"), ObjectKey("n2", "a")}


def test_indexes_follow_changes_and_include_existing_objects() -> None:
    cache = ObjectCache()
    cache.put(DEPLOYMENTS, obj(1))
    cache.add_index(DEPLOYMENTS, "app", by_app)
    assert cache.by_index(DEPLOYMENTS, "app", "x") == [obj(1)]
    cache.put(DEPLOYMENTS, obj(2, app="y"))
    assert cache.by_index(DEPLOYMENTS, "app", "x") == []
    assert cache.by_index(DEPLOYMENTS, "app", "y") == [obj(2, app="y")]
    cache.remove(DEPLOYMENTS, KEY, "u1")
    assert cache.by_index(DEPLOYMENTS, "app", "y") == []


def test_records_follow_changes() -> None:
    cache = ObjectCache()
    cache.add_record(DEPLOYMENTS, "app", lambda each: by_app(each)[0])
    for version, app in ((1, "x"), (2, "y")):
        cache.put(DEPLOYMENTS, obj(version, app=app))
        assert cache.record(DEPLOYMENTS, "app", KEY) == app
    cache.remove(DEPLOYMENTS, KEY, "u1")
    assert cache.record(DEPLOYMENTS, "app", KEY) is None
    with pytest.raises(KeyError):
        cache.record(DEPLOYMENTS, "other", KEY)


def test_objects_of_several_resources_are_returned_with_their_resource() -> None:
    cache = ObjectCache()
    for resource in (DEPLOYMENTS, SERVICES):
        cache.add_index(resource, "app", by_app)
    cache.put(SERVICES, obj(1, uid="u2"))
    cache.put(DEPLOYMENTS, obj(1))
    cache.put(DEPLOYMENTS, obj(1, uid="u3", name="b", app="y"))
    both = [(DEPLOYMENTS, obj(1)), (SERVICES, obj(1, uid="u2"))]
    assert list(cache.by_indexes((DEPLOYMENTS, SERVICES), "app", "x")) == both
    with pytest.raises(KeyError):
        list(cache.by_indexes((PODS,), "app", "x"))


def test_listeners_get_changes_and_a_failing_listener_affects_no_other() -> None:
    cache, heard = ObjectCache(), []

    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    cache.on_change(broken)
    cache.on_change(lambda resource, key, old, new: heard.append((resource.id, key, old, new)))
    cache.put(DEPLOYMENTS, obj(1))
    cache.put(DEPLOYMENTS, obj(1))
    cache.remove(DEPLOYMENTS, KEY, "u1")
    assert heard == [("deployments.apps", KEY, None, obj(1)), ("deployments.apps", KEY, obj(1), None)]


def test_data_kept_by_uid_is_dropped_with_its_object() -> None:
    """If the object is deleted, has a successor of the same name, or belongs to another replica now."""
    cache = ObjectCache()

    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    cache.on_leave(broken)
    memory: ObjectMemory[str] = cache.memory()
    for uid, name in (("u1", "a"), ("u2", "b"), ("u3", "c")):
        cache.put(DEPLOYMENTS, obj(1, uid=uid, name=name))
        memory.keep(obj(1, uid=uid, name=name), "noted")
    said(cache, obj(2, uid="u1"))
    assert set(memory) == {"u1", "u2", "u3"}, "it has only changed"
    ended(cache, 3, uid="u1")
    assert set(memory) == {"u2", "u3"}
    cache.put(DEPLOYMENTS, obj(4, uid="u4", name="b"))
    assert set(memory) == {"u3"}
    cache.forget(DEPLOYMENTS, [ObjectKey("ns", "c"), ObjectKey("ns", "unknown")])
    assert not memory


def test_no_data_is_kept_for_an_object_that_has_left() -> None:
    """A writer learns something of an object in the answer to a request, and the object may be deleted meanwhile."""
    cache = ObjectCache()
    memory: ObjectMemory[str] = cache.memory()
    for gone in (obj(1, uid="u1"), obj(2, uid="u2")):
        cache.put(DEPLOYMENTS, gone)
        cache.remove(DEPLOYMENTS, KEY, objects.uid(gone))
        memory.keep(gone, "noted")
    cache.put(DEPLOYMENTS, obj(3, uid="u3"))
    memory.keep(obj(2, uid="u2"), "noted")
    assert not memory


def test_only_the_read_fields_of_large_objects_are_kept() -> None:
    cache = ObjectCache()
    heard: list[Any] = []
    cache.on_change(lambda _resource, _key, old, new: heard.append((old, new)))
    cache.keep_only(DEPLOYMENTS, lambda each: {name: each[name] for name in each if name != "spec"})
    cache.add_index(DEPLOYMENTS, "app", by_app)
    cache.put(DEPLOYMENTS, obj(1) | {"spec": {"replicas": 1}})
    cache.put(DEPLOYMENTS, obj(2) | {"spec": {"replicas": 2}})
    cache.put(SERVICES, obj(1) | {"spec": {}})
    assert cache.by_index(DEPLOYMENTS, "app", "x") == [obj(2)]
    assert heard[:2] == [(None, obj(1)), (obj(1), obj(2))]
    assert cache.get(SERVICES, KEY) == obj(1) | {"spec": {}}


def test_an_index_returns_few_and_many_objects_of_one_value() -> None:
    cache = ObjectCache()
    cache.add_index(DEPLOYMENTS, "all", lambda _: ("all",))
    names = [f"web-{number}" for number in range(3 * FEW)]
    for name in names:
        each = obj(1, name=name)
        cache.take(DEPLOYMENTS, key_of(each), each, version_of(each))
    assert [each["metadata"]["name"] for each in cache.by_index(DEPLOYMENTS, "all", "all")] == names
    for name in names[1:]:
        cache.take(DEPLOYMENTS, key_of(obj(1, name=name)), None, version_of(obj(1, name=name)))
    assert cache.by_index(DEPLOYMENTS, "all", "all") == [obj(1, name=names[0])]
    assert [key.name for _, key in cache.indexed(DEPLOYMENTS, "all")] == names[:1]


def test_forgotten_objects_leave_the_indexes_without_a_notification() -> None:
    cache = ObjectCache()
    cache.add_index(DEPLOYMENTS, "app", by_app)
    said(cache, obj(5))
    cache.put(DEPLOYMENTS, obj(6))
    heard: list[ObjectKey] = []
    cache.on_change(lambda _, key, __, ___: heard.append(key))
    cache.forget(DEPLOYMENTS, [KEY, ObjectKey("ns", "unknown")])
    assert (cache.count(DEPLOYMENTS), cache.by_index(DEPLOYMENTS, "app", "x"), heard) == (0, [], [])
    assert said(cache, obj(5)), "what was written here counts no longer"


def test_resource_versions_compare_as_integers() -> None:
    assert resource_version("1000") > resource_version("999")
    assert resource_version(None) == resource_version("") == resource_version("abc") == 0
