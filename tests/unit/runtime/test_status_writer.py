"""A status is written where it differs: at once where it matters, a little later where more may follow, never after the end."""

from typing import Any

import pytest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey, Resource, key_of
from dynamo_shared.kube.errors import NotServed, from_status
from dynamo_shared.runtime.status_writer import SETTLE, StatusWriter
from dynamo_shared.state.cache import ObjectCache

GRAPHS = DYNAMO_GRAPH_DEPLOYMENTS


def graph(uid: str = "u", version: int = 1, **status: Any) -> KubeObject:
    metadata = {"name": "g", "namespace": "ns", "uid": uid, "resourceVersion": str(version)}
    return {"kind": GRAPHS.kind, "metadata": metadata, "status": status}


KEY = key_of(graph())


class Kube:
    """Writes what it is given, unless it is gone."""

    def __init__(self) -> None:
        self.written: list[KubeObject] = []
        self.gone = False
        self.about: dict[str, Any] = {"name": "g"}
        self.lacks: tuple[str, ...] = ()
        """fields of components that its definition does not have"""

    async def apply_status(self, resource: Resource, obj: KubeObject) -> KubeObject:
        if self.gone:
            raise from_status(
                404, {"reason": "NotFound", "message": "gone", "details": self.about}, request=resource.path("ns", "g")
            )
        if any(name in each for name in self.lacks for each in obj["status"].get("components", {}).values()):
            raise from_status(500, {"message": "failed to create typed patch object: .x: field not declared in schema"})
        self.written.append(obj)
        return graph(version=int(obj["metadata"]["resourceVersion"]) + 1, **obj["status"])

    async def try_status(self, _: Resource, obj: KubeObject) -> KubeObject:
        """As the API server merges on trial: what its definition lacks is left out, and what is there already stays."""
        status = obj["status"]
        components = {
            name: {field: value for field, value in each.items() if field not in self.lacks}
            for name, each in status["components"].items()
        }
        return graph(**{**status, "components": {"gone": {}, **components}}, left=True)


class World:
    """A writer, with what is in its cache and what it reported."""

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


async def test_what_is_so_already_is_not_written() -> None:
    obj = graph(state="pending")
    world = World(obj)
    assert await world.write(obj, urgent=True, state="pending") is None
    assert not world.kube.written
    assert not world.reported


@pytest.mark.parametrize("state", ["successful", "failed"])
async def test_what_people_wait_for_is_written_at_once_with_the_version_it_was_concluded_from(state: str) -> None:
    obj = graph(state="pending")
    world = World(obj)
    assert await world.write(obj, state=state) is None
    assert [each["metadata"]["resourceVersion"] for each in world.kube.written] == ["1"]
    assert world.cached() == graph(version=2, state=state)
    assert world.reported == 1


async def test_progress_waits_for_more_of_it() -> None:
    obj = graph(state="pending", replicas=0)
    world = World(obj)
    assert await world.write(obj, state="pending", replicas=1) == pytest.approx(SETTLE)
    world.time += SETTLE / 2
    assert await world.write(obj, state="pending", replicas=2) == pytest.approx(SETTLE / 2)
    world.time += SETTLE / 2
    assert await world.write(obj, state="pending", replicas=3) is None
    assert [each["status"]["replicas"] for each in world.kube.written] == [3]
    assert world.reported == 1


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


async def test_what_is_worth_little_waits_longer_until_there_is_more() -> None:
    obj = graph(state="pending", replicas=0)
    world = World(obj)
    assert await world.writer.write(GRAPHS, obj, {"state": "pending"}, urgent=False, settle=60.0) == 60.0
    world.time += 20
    assert world.writer.progress(GRAPHS, KEY) == pytest.approx(SETTLE)
    world.time += SETTLE
    assert await world.writer.write(GRAPHS, obj, {"state": "pending"}, urgent=False, settle=60.0) is None
    assert len(world.kube.written) == 1


async def test_where_more_is_certain_to_come_progress_is_held_back_until_it_is_there() -> None:
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


async def test_progress_of_what_is_not_known_waits_and_is_not_remembered() -> None:
    world = World(graph())
    assert world.writer.progress(GRAPHS, ObjectKey("ns", "another")) == SETTLE
    assert world.writer._waiting == world.writer._observed == {}


@pytest.mark.parametrize("successor", [None, graph("v", version=2)], ids=["gone", "followed by another"])
async def test_nothing_is_reported_of_what_went_meanwhile(successor: KubeObject | None) -> None:
    """News of its end has left already, and is the last of it."""
    obj = graph(state="pending")
    world = World(obj)
    world.cache.remove(GRAPHS, KEY, "u")
    if successor is not None:
        world.cache.put(GRAPHS, successor)
    assert await world.write(obj, state="successful") is None
    assert not world.reported
    assert not world.kube.written
    assert world.cached() == successor


async def test_progress_of_what_is_not_there_is_not_remembered() -> None:
    obj = graph(state="pending", replicas=0)
    world = World(obj)
    await world.write(obj, state="pending", replicas=1)
    assert world.writer._waiting
    world.cache.forget(GRAPHS, [KEY])
    assert not world.writer._waiting, "another replica has it now"
    assert await world.write(obj, state="pending", replicas=2) is None
    assert not world.writer._waiting, "a reconcile that ended late"


async def test_what_the_api_server_says_is_gone_is_gone() -> None:
    obj = graph(state="pending")
    world = World(obj)
    world.kube.gone = True
    assert await world.write(obj, state="successful") is None
    assert world.cached() is None
    assert world.cache.keys(GRAPHS) == set[ObjectKey]()


async def test_an_answer_that_names_no_object_says_of_none_that_it_is_gone() -> None:
    """A gateway says so, or an API server that does not know the type yet: the graph would be reported as deleted."""
    obj = graph(state="pending")
    world = World(obj)
    world.kube.gone, world.kube.about = True, {}
    with pytest.raises(NotServed):
        await world.write(obj, state="successful")
    assert world.cached() == obj


@pytest.mark.parametrize("fields", [("scheduled",), ("gpusPerEngine", "gpusPerReplica")])
async def test_what_an_older_definition_lacks_is_left_out_and_the_rest_is_written_once(fields: tuple[str, ...]) -> None:
    """The platform was upgraded, and its definitions were not: no status was written any more."""
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
