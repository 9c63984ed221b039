"""What an answer of the API server says of an object, and what it does not: the cache forgets what is gone, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from dynamo_pod_builder.applying import Applier, ChildChange, stamped
from dynamo_shared.api import objects, resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.kube.errors import AlreadyExists, Conflict, NotFound, NotServed
from dynamo_shared.state.cache import ObjectCache
from dynamo_shared.state.versions import version_of

from tests.unit.render.building import component, graph_children

from .graph.building import stored, stored_graph

CHILD = next(each for each in graph_children(stored_graph(component())) if each["kind"] == "ServiceAccount")
RESOURCE, KEY = resources.of(CHILD), resources.key_of(CHILD)


class Server:
    """An API server with one object, whose next apply is refused."""

    field_manager = "dynamo-pod-builder"

    def __init__(self, obj: KubeObject | None, refusal: Exception | None = None) -> None:
        self.obj = obj
        self.refusal = refusal

    async def get(self, _resource: Resource, _key: ObjectKey) -> KubeObject:
        if self.obj is None:
            raise NotFound(404, "NotFound", "gone", {"name": KEY.name})
        return self.obj

    async def create(self, _resource: Resource, obj: KubeObject) -> KubeObject:
        if self.obj is not None:
            raise AlreadyExists(409, "AlreadyExists", "there")
        self.obj = self._written(obj, "new")
        return self.obj

    async def apply(self, _resource: Resource, obj: KubeObject) -> KubeObject:
        if self.refusal is not None:
            refusal, self.refusal = self.refusal, None
            raise refusal
        assert self.obj is not None
        self.obj = self._written(obj, objects.uid(self.obj))
        return self.obj

    async def merge_patch(self, _resource: Resource, _key: ObjectKey, patch: KubeObject) -> KubeObject:
        if self.obj is None:
            raise NotFound(404, "NotFound", "gone", {"name": KEY.name})
        given = {**objects.annotations(self.obj), **patch["metadata"]["annotations"]}
        annotations = {name: value for name, value in given.items() if value is not None}
        metadata = {**self.obj["metadata"], "annotations": annotations}
        self.obj = self._written({**self.obj, "metadata": metadata}, objects.uid(self.obj))
        return self.obj

    def _written(self, obj: KubeObject, uid: str) -> KubeObject:
        version = 2 if self.obj is None else int(self.obj["metadata"]["resourceVersion"]) + 1
        return {**obj, "metadata": {**obj["metadata"], "uid": uid, "resourceVersion": str(version)}}


def drifted() -> KubeObject:
    """The child as it is stored, without a label that it should have."""
    there = stored(stamped(CHILD))
    return {**there, "metadata": {**there["metadata"], "labels": {}}}


def applier(server: Server, there: KubeObject) -> tuple[Applier, ObjectCache]:
    cache = ObjectCache()
    cache.take(RESOURCE, KEY, there, version_of(there))
    kube: Any = server
    return Applier(kube, cache), cache


async def test_a_faster_writer_does_not_make_an_object_be_gone() -> None:
    """What is said to be gone is not taken in again from STATE for long, and its owner reports that nothing is there."""
    there = drifted()
    server = Server(there, Conflict(409, "Conflict", "the object has been modified"))
    writer, cache = applier(server, there)
    with pytest.raises(Conflict):
        await writer.ensure(CHILD)
    assert cache.get(RESOURCE, KEY) == there
    assert (await writer.ensure(CHILD)).change is ChildChange.UPDATED
    assert cache.get(RESOURCE, KEY) == server.obj


@pytest.mark.parametrize("successor", [None, "another"], ids=["gone", "followed by another"])
async def test_what_is_gone_is_made_again(successor: str | None) -> None:
    there = drifted()
    now = None if successor is None else {**there, "metadata": {**there["metadata"], "uid": successor}}
    server = Server(now, Conflict(422, "Invalid", "metadata.uid"))
    writer, cache = applier(server, there)
    await writer.ensure(CHILD)
    assert cache.get(RESOURCE, KEY) == server.obj
    assert server.obj is not None
    assert objects.uid(server.obj) != objects.uid(there)


NO_PAGE = NotServed(404, "", "404 page not found")


class Gateway:
    """Answers whatever is asked without a word about the object."""

    async def get(self, *_: object) -> KubeObject:
        raise NO_PAGE

    async def delete(self, *_: object, **__: object) -> None:
        raise NO_PAGE


async def test_an_answer_that_names_no_object_says_of_none_that_it_is_gone() -> None:
    """Forgotten, it would not be reconciled again, nor deleted, until STATE has another word of it."""
    there = drifted()
    cache = ObjectCache()
    cache.take(RESOURCE, KEY, there, version_of(there))
    kube: Any = Gateway()
    for ask in (Applier(kube, cache).exists(there), Applier(kube, cache).delete(RESOURCE, there)):
        with pytest.raises(NotServed):
            await ask
    assert cache.get(RESOURCE, KEY) == there


async def test_annotations_are_known_as_soon_as_they_are_written() -> None:
    there = drifted()
    server = Server(there)
    writer, cache = applier(server, there)
    await writer.annotate(RESOURCE, there, {"a": "1", "nvidia.com/last-applied-hash": None})
    known = cache.get(RESOURCE, KEY)
    assert known == server.obj
    assert known is not None
    assert objects.annotations(known) == {"a": "1"}
    server.obj = None
    await writer.annotate(RESOURCE, there, {"a": "2"})
