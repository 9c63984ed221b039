"""Malformed objects: their CRD is not the platform's, or leaves parts unchecked.

A graph is in the middle of an update of its workers, and one of its objects is malformed in one place.
"""

import asyncio
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

import pytest
from dynamo_shared.api import resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, key_of
from dynamo_shared.kube.errors import KubeError
from hypothesis import given
from hypothesis import strategies as st

from tests.building.clock import ManualClock
from tests.building.objects import copied
from tests.examples import examples

from .faults import Client, Network
from .process import Process
from .rollout import WITH_GROUPS, RolloutStory, Worker, _Direct
from .timed import TimedWorld

Path = tuple[str | int, ...]
KINDS = ("DynamoGraphDeployment", "DynamoComponentDeployment", "Deployment", "LeaderWorkerSet", "Pod")
#: Objects with a status, by where it is used.
REPORTING = {each.plural: each.id for each in (DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS)}
#: Stands for a missing field.
ABSENT = "(absent)"
VALUES: tuple[Any, ...] = (ABSENT, None, {}, [], "x", -1, 2**31 - 1, [None], [{}], {"a": None})
#: Longer than any delay of a status, and than the longest back-off. Seconds.
LONG, STEP = 1500.0, 300.0


@cache
def begun() -> tuple[float, list[KubeObject]]:
    """All objects after an update has started."""

    async def begin() -> tuple[float, list[KubeObject]]:
        workers = (
            Worker("Front", type_="frontend", gpus=0),
            Worker("One", replicas=2),
            Worker("Wide", nodes=2, replicas=2),
        )
        story = RolloutStory(workers, spare=8)
        assert await story.calm()
        story.update("img:2")
        await story.go_on(4)
        await story.close()
        return story.clock.now, list(story.world.objects.values())

    return asyncio.run(begin())


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """All places of an object except in its metadata, which the API server checks itself."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, each in inner:
        if path or step in ("spec", "status"):
            yield (*path, step)
            yield from places(each, (*path, step))


def odd(obj: KubeObject, path: Path, value: Any) -> KubeObject:
    """The object with another value at that place."""
    changed: Any = copied(obj)
    place = changed
    for step in path[:-1]:
        place = place[step]
    if value == ABSENT:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return cast("KubeObject", changed)


class Story:
    """All objects, one of them malformed, whose controller writes nothing more."""

    def __init__(self, changed: KubeObject) -> None:
        now, stored = begun()
        self.clock = ManualClock(now)
        self.world = TimedWorld(self.clock)
        for obj in (*map(copied, stored), changed):
            self.world.put(obj)
        self.world.publish_all()
        self.process = Process(self.world, Client(self.world, cast("Network", _Direct())), self.clock, WITH_GROUPS)
        self.process.retried = (Exception,)

    async def go_on(self, seconds: float) -> None:
        """Let that much time pass."""
        until = self.clock.now + seconds
        while self.clock.now < until:
            for feed in self.world.feed.values():
                while feed:
                    self.process.take(feed.popleft())
            for task in self.process.due:
                self.process.begin(task)
            while self.process.working:
                await self.process.settle()
            self.clock.now += STEP

    async def writes(self) -> list[str]:
        """The writes when everything is reconciled repeatedly."""
        writes, statuses = len(self.world.writes), self.world.statuses
        for _ in range(2):
            self.process.enqueue_all()
            await self.go_on(STEP)
        return self.world.writes[writes:] + ["status"] * (self.world.statuses - statuses)


@pytest.mark.parametrize("kind", KINDS)
@examples(12)
@given(data=st.data())
def test_the_effect_of_a_malformed_object_is_reported_once_and_ends_when_it_is_repaired(
    kind: str, data: st.DataObject
) -> None:
    obj = data.draw(st.sampled_from([each for each in begun()[1] if each["kind"] == kind]))
    # The platform's own schemas check conditions of its own kinds.
    own = obj["kind"].startswith("Dynamo")
    within = [each for each in places(obj) if len(each) > 1 and not (own and each[:2] == ("status", "conditions"))]
    path = data.draw(st.sampled_from(within))
    changed = odd(obj, path, data.draw(st.sampled_from(VALUES)))

    async def run() -> None:
        story = Story(changed)
        await story.go_on(LONG)
        assert await story.writes() == []
        for task in story.process.failing:
            failing = story.world.objects[REPORTING[task.concern], task.key]
            assert "reconcile failed" in str(failing["status"]["conditions"])
        if story.world.objects.get((resources.of(obj).id, key_of(obj))) is not None:
            story.world.put(copied(obj))
        story.process.retried = (KubeError,)
        await story.go_on(LONG)
        assert not story.process.failing

    asyncio.run(run())
