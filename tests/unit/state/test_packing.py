"""Packed objects equal the original ones in all cases, and use a fraction of the memory."""

import gc
import random
import tracemalloc
from typing import Any

import msgspec
from dynamo_shared.api.resources import DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey, key_of
from dynamo_shared.state import ObjectCache
from dynamo_shared.state.packer import UNPACKED, UNPACKED_BYTES, Packer
from dynamo_shared.state.versions import Version, version_of
from hypothesis import given
from hypothesis import strategies as st

from tests.building.objects import object_of

MANY = 2 * UNPACKED
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def deployment(number: int, version: int = 1, app: str = "x") -> dict[str, Any]:
    containers = [
        {"name": f"container-{each}", "env": [{"name": f"NAME_{item}", "value": f"{item}"} for item in range(10)]}
        for each in range(3)
    ]
    metadata = {"uid": f"uid-{number}", "resourceVersion": str(version), "labels": {"app": app}}
    spec = {"template": {"spec": {"containers": containers}}}
    return object_of(DEPLOYMENTS, f"name-{number}", f"ns-{number % 7}", spec=spec, **metadata)


def by_app(obj: dict[str, Any]) -> list[str]:
    return [obj["metadata"]["labels"]["app"]]


def packed() -> ObjectCache:
    cache = ObjectCache()
    cache.pack(DEPLOYMENTS)
    cache.add_index(DEPLOYMENTS, "app", by_app)
    return cache


def fill(cache: ObjectCache, count: int = MANY, **fields: Any) -> None:
    for number in range(count):
        take(cache, deployment(number, **fields))


def take(cache: ObjectCache, obj: dict[str, Any]) -> bool:
    return cache.take(DEPLOYMENTS, key_of(obj), obj, version_of(obj))


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=6), min_size=1, max_size=8))
def test_an_unpacked_object_equals_the_original(objects: list[dict[str, Any]]) -> None:
    packer = Packer()
    assert [packer.unpack(each) for each in [packer.pack(msgspec.json.encode(each)) for each in objects]] == objects


def test_all_objects_are_kept() -> None:
    cache = packed()
    fill(cache)
    everything = [deployment(number) for number in range(MANY)]
    assert [cache.get(DEPLOYMENTS, key_of(each)) for each in everything] == everything
    listed = cache.list(DEPLOYMENTS)
    assert len(listed) == cache.count(DEPLOYMENTS) == MANY
    assert {key_of(each) for each in listed} == cache.keys(DEPLOYMENTS)
    of_one = [each for each in everything if each["metadata"]["namespace"] == "ns-3"]
    assert cache.list(DEPLOYMENTS, "ns-3") == of_one
    assert cache.keys(DEPLOYMENTS, "ns-3") == set(map(key_of, of_one))
    assert cache.keys(DEPLOYMENTS, "elsewhere") == set()


def test_listeners_and_indexes_get_the_old_and_the_new_object() -> None:
    cache, heard = packed(), []
    fill(cache)
    cache.on_change(lambda _resource, key, old, new: heard.append((key, old, new)))
    before, after = deployment(5), deployment(5, version=2, app="y")
    assert not take(cache, before)
    assert take(cache, after)
    assert cache.take(DEPLOYMENTS, key_of(after), None, Version("uid-5", 3, ""))
    assert heard == [(key_of(after), before, after), (key_of(after), after, None)]
    assert cache.by_index(DEPLOYMENTS, "app", "y") == []
    assert len(cache.by_index(DEPLOYMENTS, "app", "x")) == cache.count(DEPLOYMENTS) == MANY - 1


def test_the_last_write_counts_however_often_an_object_was_packed() -> None:
    cache, chance, versions = packed(), random.Random(1), dict.fromkeys(range(MANY), 1)
    fill(cache)
    for _ in range(5 * MANY):
        number = chance.randrange(MANY)
        if chance.random() < 0.3:
            versions[number] += 1
            take(cache, deployment(number, version=versions[number]))
        observed = cache.get(DEPLOYMENTS, key_of(deployment(number)))
        assert observed == deployment(number, version=versions[number])


def test_a_deleted_object_is_not_packed() -> None:
    cache = packed()
    fill(cache, 3)
    for number in range(3):
        assert cache.remove(DEPLOYMENTS, key_of(deployment(number)), f"uid-{number}")
    assert cache.count(DEPLOYMENTS) == 0
    assert cache.get(DEPLOYMENTS, ObjectKey("ns-0", "name-0")) is None


def test_an_object_in_use_is_unpacked_once() -> None:
    cache = packed()
    fill(cache)
    used, idle = (key_of(deployment(number)) for number in (5, 6))
    first, other = cache.get(DEPLOYMENTS, used), cache.get(DEPLOYMENTS, idle)
    for number in range(100, 100 + UNPACKED):
        cache.get(DEPLOYMENTS, key_of(deployment(number)))
        assert cache.get(DEPLOYMENTS, used) is first
    again = cache.get(DEPLOYMENTS, idle)
    assert again == other
    assert again is not other


def test_the_least_used_object_is_packed_whatever_its_resource() -> None:
    cache = packed()
    cache.pack(DYNAMO_GRAPH_DEPLOYMENTS)
    graph = deployment(0)
    cache.take(DYNAMO_GRAPH_DEPLOYMENTS, key_of(graph), graph, version_of(graph))
    assert cache.get(DYNAMO_GRAPH_DEPLOYMENTS, key_of(graph)) is graph
    fill(cache, UNPACKED)
    unpacked = cache.get(DYNAMO_GRAPH_DEPLOYMENTS, key_of(graph))
    assert unpacked == graph
    assert unpacked is not graph


def test_states_of_all_objects_are_known_without_unpacking() -> None:
    cache = packed()
    fill(cache)
    assert dict.fromkeys(cache.indexed(DEPLOYMENTS, "app")) == {
        ("x", key): None for key in cache.keys(DEPLOYMENTS)
    }  # fmt: skip


def memory(cache: ObjectCache) -> int:
    tracemalloc.start()
    try:
        fill(cache)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_many_objects_take_less_memory() -> None:
    # Including what the packer keeps unpacked, which more objects would share.
    assert memory(packed()) * 1.5 < memory(ObjectCache())


def test_few_large_objects_are_kept_unpacked() -> None:
    cache = packed()
    large = [deployment(number, app="x" * UNPACKED_BYTES) for number in range(3)]
    for each in large:
        take(cache, each)
    assert [cache.get(DEPLOYMENTS, key_of(each)) is each for each in reversed(large)] == [True, False, False]
    assert [cache.get(DEPLOYMENTS, key_of(each)) for each in large] == large
