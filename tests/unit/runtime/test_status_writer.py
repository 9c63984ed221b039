"""A status is written if it differs: at once if it matters, later if more may follow, never after the deletion."""

from collections.abc import Callable
from typing import Any

import pytest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey, Resource, key_of
from dynamo_shared.kube.errors import KubeError, NotServed, Unauthorized, from_status
from dynamo_shared.runtime.status_writer import SETTLE, StatusWriter
from dynamo_shared.state.cache import ObjectCache

GRAPHS = DYNAMO_GRAPH_DEPLOYMENTS


def graph(uid: str = "u", version: int = 1, **status: Any) -> KubeObject:
    metadata = {"name": "g", "namespace": "ns", "uid": uid, "resourceVersion": str(version)}
    return {**GRAPHS.type_meta, "metadata": metadata, "status": status}


KEY = key_of(graph())


class Kube:
    """Writes a status unless the object is gone."""

    def __init__(self) -> None:
        self.written: list[KubeObject] = []
        self.gone = False
        self.about: dict[str, Any] = {"name": "g"}
        self.lacks: tuple[str, ...] = ()
        """fields of components that its definition does not have"""
        self.refusal: KubeError | None = None
        self.meanwhile: Callable[[], object] = lambda: None
        """what happens during a request"""

    async def apply_status(self, resource: Resource, obj: KubeObject) -> KubeObject:
        self.meanwhile()
        if self.refusal is not None:
            raise self.refusal
        if self.gone:
            raise from_status(
                404, {"reason": "NotFound", "message": "gone", "details": self.about}, request=resource.path("ns", "g")
            )
        if any(name in each for name in self.lacks for each in obj["status"].get("components", {}).values()):
            raise from_status(500, {"message": "failed to create typed patch object: .x: field not declared in schema"})
        self.written.append(obj)
        return graph(version=int(obj["metadata"]["resourceVersion"]) + 1, **obj["status"])

    async def try_status(self, _: Resource, obj: KubeObject) -> KubeObject:
        """Like a dry run of the API server: fields missing in its CRD are dropped, and existing ones stay."""
        status = obj["status"]
        components = {
            name: {field: value for field, value in each.items() if field not in self.lacks}
            for name, each in status["components"].items()
        }
        return graph(**{**status, "components": {"gone": {}, **components}}, left=True)


class World:
    """A writer, its cache, and its reports."""

    def __init__(self, obj: KubeObject) -> None:
        self.kube, self.cache, self.time = Kube(), ObjectCache(), 0.0
        self.cache.put(GRAPHS, obj)
        self.writer = StatusWriter(self.kube, self.cache, lambda: self.time)  # type: ignore[arg-type]
        self.reported = 0

    def cached(self) -> KubeObject | None:
        return self.cache.get(GRAPHS, KEY)

    async def write(self, obj: KubeObject, *, urgent: bool = False, **status: Any) -> float | None:
        return await self.writer.write(GRAPHS, obj, status, urgent=urgent, report=self._report)

    def _report(self) -> None:
        self.reported += 1


async def test_an_unchanged_status_is_not_written() -> None:
    obj = graph(state="pending")
    world = World(obj)
    assert await world.write(obj, urgent=True, state="pending") is None
    assert not world.kube.written
    assert not world.reported


@pytest.mark.parametrize("state", ["successful", "failed"])
async def test_an_important_status_is_written_at_once_with_the_version_it_was_derived_from(state: str) -> None:
    obj = graph(state="pending")
    world = World(obj)
    assert await world.write(obj, state=state) is None
    assert [each["metadata"]["resourceVersion"] for each in world.kube.written] == ["1"]
    assert world.cached() == graph(version=2, state=state)
    assert world.reported == 1


async def test_progress_is_debounced() -> None:
    obj = graph(state="pending", replicas=0)
    world = World(obj)
    assert await world.write(obj, state="pending", replicas=1) == pytest.approx(SETTLE)
    world.time += SETTLE / 2
    assert await world.write(obj, state="pending", replicas=2) == pytest.approx(SETTLE / 2)
    world.time += SETTLE / 2
    assert await world.write(obj, state="pending", replicas=3) is None
    assert [each["status"]["replicas"] for each in world.kube.written] == [3]
    assert world.reported == 1


async def test_progress_that_the_server_refused_does_not_wait_again() -> None:
    # For the queue, a reconcile that waits is a success, after which its delays start over: three writes a second.
    obj = graph(state="pending", replicas=0)
    world = World(obj)
    await world.write(obj, state="pending", replicas=1)
    world.time += SETTLE
    world.kube.refusal = Unauthorized(401, "Unauthorized", "Unauthorized")
    for _ in range(3):
        with pytest.raises(Unauthorized):
            await world.write(obj, state="pending", replicas=1)
    world.kube.refusal = None
    assert await world.write(obj, state="pending", replicas=1) is None
    after = world.cached()
    assert after is not None
    assert await world.write(after, state="pending", replicas=2) == pytest.approx(SETTLE), "the next progress waits"


async def test_progress_that_has_waited_already_is_written_by_the_first_reconcile() -> None:
    obj = graph(state="pending", replicas=0)
    world = World(obj)
    assert world.writer.progress(GRAPHS, KEY) == pytest.approx(SETTLE)
    world.time += SETTLE / 2
    assert world.writer.progress(GRAPHS, KEY) == pytest.approx(SETTLE / 2), "more of it"
    world.time += SETTLE / 2
    assert await world.write(obj, state="pending", replicas=2) is None
    assert [each["status"]["replicas"] for each in world.kube.written] == [2]
    assert world.writer.progress(GRAPHS, KEY) == pytest.approx(SETTLE), "the next one waits again"


async def test_unimportant_progress_waits_longer() -> None:
    obj = graph(state="pending", replicas=0)
    world = World(obj)
    assert await world.writer.write(GRAPHS, obj, {"state": "pending"}, urgent=False, settle=60.0) == 60.0
    world.time += 20
    assert world.writer.progress(GRAPHS, KEY) == pytest.approx(SETTLE)
    world.time += SETTLE
    assert await world.writer.write(GRAPHS, obj, {"state": "pending"}, urgent=False, settle=60.0) is None
    assert len(world.kube.written) == 1


async def test_progress_is_delayed_if_more_is_certain_to_follow() -> None:
    obj = graph(state="pending", replicas=0)
    world, status = World(obj), {"state": "pending"}

    async def write(settle: float, *, heeds_progress: bool) -> float | None:
        return await world.writer.write(GRAPHS, obj, status, urgent=False, settle=settle, heeds_progress=heeds_progress)

    assert world.writer.progress(GRAPHS, KEY) == pytest.approx(SETTLE)
    world.time += SETTLE
    assert await write(60.0, heeds_progress=False) == 60.0
    world.time += 20
    assert await write(60.0, heeds_progress=False) == 40.0
    assert await write(SETTLE, heeds_progress=True) is None
    assert len(world.kube.written) == 1
    assert world.writer._waiting == world.writer._observed == {}


async def test_progress_of_an_unknown_object_waits_and_is_not_recorded() -> None:
    world = World(graph())
    assert world.writer.progress(GRAPHS, ObjectKey("ns", "another")) == SETTLE
    assert world.writer._waiting == world.writer._observed == {}


@pytest.mark.parametrize("successor", [None, graph("v", version=2)], ids=["gone", "followed by another"])
async def test_nothing_is_reported_about_an_object_that_was_deleted_meanwhile(successor: KubeObject | None) -> None:
    """The report of its deletion was published already, and must be the last one."""
    obj = graph(state="pending")
    world = World(obj)
    world.cache.remove(GRAPHS, KEY, "u")
    if successor is not None:
        world.cache.put(GRAPHS, successor)
    assert await world.write(obj, state="successful") is None
    assert not world.reported
    assert not world.kube.written
    assert world.cached() == successor


async def test_progress_of_a_missing_object_is_not_recorded() -> None:
    obj = graph(state="pending", replicas=0)
    world = World(obj)
    await world.write(obj, state="pending", replicas=1)
    assert world.writer._waiting
    world.cache.forget(GRAPHS, [KEY])
    assert not world.writer._waiting, "another replica has it now"
    assert await world.write(obj, state="pending", replicas=2) is None
    assert not world.writer._waiting, "a reconcile that ended late"


async def test_a_refused_status_of_an_object_that_was_deleted_meanwhile_is_not_recorded() -> None:
    obj = graph(state="pending")
    world = World(obj)
    world.kube.refusal = Unauthorized(401, "Unauthorized", "Unauthorized")
    world.kube.meanwhile = lambda: world.cache.remove(GRAPHS, KEY, "u")
    with pytest.raises(Unauthorized):
        await world.write(obj, state="successful")
    assert not world.writer._waiting


async def test_a_not_found_answer_removes_the_object_from_the_cache() -> None:
    obj = graph(state="pending")
    world = World(obj)
    world.kube.gone = True
    assert await world.write(obj, state="successful") is None
    assert world.cached() is None
    assert world.cache.keys(GRAPHS) == set[ObjectKey]()


async def test_a_404_that_names_no_object_removes_nothing_from_the_cache() -> None:
    """A gateway may answer so, or an API server that lacks the type yet: the graph would be reported as deleted."""
    obj = graph(state="pending")
    world = World(obj)
    world.kube.gone, world.kube.about = True, {}
    with pytest.raises(NotServed):
        await world.write(obj, state="successful")
    assert world.cached() == obj


@pytest.mark.parametrize("fields", [("scheduled",), ("gpusPerEngine", "gpusPerReplica")])
async def test_fields_missing_in_an_older_crd_are_dropped_and_the_rest_is_written_once(fields: tuple[str, ...]) -> None:
    """If the platform was upgraded without its CRDs, no status was written any more."""
    obj = graph(state="pending")
    world = World(obj)
    world.kube.lacks = fields
    components = {"a": {"ready": 1, **dict.fromkeys(fields, 2)}}
    conditions = [{"type": "Ready", "status": "False"}]
    status: dict[str, Any] = {"state": "failed", "components": components, "conditions": conditions}
    assert await world.write(obj, **status) is None
    kept = {**status, "components": {"a": {"ready": 1}}}
    assert [each["status"] for each in world.kube.written] == [kept]
    now = graph(version=2, **kept)
    assert world.cached() == now
    assert await world.write(now, urgent=True, **status) is None
    assert (len(world.kube.written), world.reported) == (1, 1), "it is as the definition lets it be"
    await world.write(now, urgent=True, **{**status, "state": "successful"})
    assert len(world.kube.written) == 2
