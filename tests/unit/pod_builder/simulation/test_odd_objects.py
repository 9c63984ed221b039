"""Objects that say what their readers do not expect: whose definition is another's, or leaves open what no one has checked.

A graph is in the middle of an update of its workers, and one of its objects is odd in one place.
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
#: What has a status, by concern.
REPORTING = {each.plural: each.id for each in (DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS)}
#: Stands for a field that is not there.
ABSENT = "(absent)"
VALUES: tuple[Any, ...] = (ABSENT, None, {}, [], "x", -1, 2**31 - 1, [None], [{}], {"a": None})
#: Longer than anything that a status waits for, and than the longest back-off. Seconds.
LONG, STEP = 1500.0, 300.0


@cache
def begun() -> tuple[float, list[KubeObject]]:
    """When an update has begun, and all objects there are then."""

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
    """Where something stands in an object, but in its metadata, which the API server checks itself."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, each in inner:
        if path or step in ("spec", "status"):
            yield (*path, step)
            yield from places(each, (*path, step))


def odd(obj: KubeObject, path: Path, value: Any) -> KubeObject:
    """The object with another value there."""
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
    """All that was there, with one object that is odd; its controller writes nothing more."""

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
        """So much time passes."""
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
        """What is written when everything is reconciled again and again."""
        writes, statuses = len(self.world.writes), self.world.statuses
        for _ in range(2):
            self.process.enqueue_all()
            await self.go_on(STEP)
        return self.world.writes[writes:] + ["status"] * (self.world.statuses - statuses)


@pytest.mark.parametrize("kind", KINDS)
@examples(12)
@given(data=st.data())
def test_what_an_odd_object_leads_to_is_reported_once_and_over_when_it_is_right_again(
    kind: str, data: st.DataObject
) -> None:
    obj = data.draw(st.sampled_from([each for each in begun()[1] if each["kind"] == kind]))
    # Conditions of the platform's own kinds are checked by its own schemas, and say what a status is written after.
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
            assert "its reconcile failed" in str(failing["status"]["conditions"])
        if story.world.objects.get((resources.of(obj).id, key_of(obj))) is not None:
            story.world.put(copied(obj))
        story.process.retried = (KubeError,)
        await story.go_on(LONG)
        assert not story.process.failing

    asyncio.run(run())
