"""A story: pod-builder, other controllers, users and faults in the order of a seed; then a calm phase."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import ENABLE_GROVE
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS

from tests.building.clock import ManualClock
from tests.building.objects import copied
from tests.unit.render.building import CONFIG

from .controllers import Controllers
from .faults import Client, Network
from .process import Process
from .user import ALWAYS, User
from .world import Word, World

#: With every way to run a graph.
ALL_WAYS = replace(CONFIG, leader_worker_sets=True, grove=True, ssh_secret="mpi-keys")
#: The number of user changes, and the chance of a restart, before the calm phase.
ACTS, RESTARTS = 10, 0.3
#: The share of steps that are such a change: higher while objects are being deleted, when most can go wrong.
ACTING, ACTING_AT_AN_END = 0.01, 0.05
#: The share of steps that let time pass although there is work.
WAITING = 0.02
#: Shares of the resources whose changes are read late once an object is being deleted, and the delays in seconds.
LATE, DELAYS = (0.0, 0.5, 1.0), (0.2, 5.0)
#: The limit of steps of the phase with faults, and of the calm phase: many times the usual number.
BOUND = 40_000
#: Time limits for retrying all failures, and for checking all that STATE did not confirm. Seconds.
CALM, REST = 1500.0, 120.0
#: The shortest time that passes. Seconds.
TICK = 0.05


class Story:
    """`careful` users and restarts: the writes of a process arrive before the next one starts.

    `outages`: components that served and then had no serving pods, each with the time.
    """

    def __init__(self, seed: int, *, careful: bool) -> None:
        self._chance = Random(seed)
        self._careful = careful
        self._clock = ManualClock(1000.0)
        self.world = World()
        self.network = Network(self._chance)
        self.controllers = Controllers(self.world, self._chance)
        self.user = User(self.world, self._chance, careful=careful)
        self.outages: list[str] = []
        self._serving: set[str] = set()
        self._watched = -1
        self._held_until: dict[str, float] = {}
        """changes that are not read yet, by resource id"""
        self._ending = False
        self._former: list[asyncio.Task[Any]] = []
        self.process = self._started()

    def _started(self) -> Process:
        self.world.publish_all()
        return Process(self.world, Client(self.world, self.network), self._clock, ALL_WAYS)

    async def run(self) -> None:
        """Changes with faults, then calm. Raises AssertionError if it never becomes calm, and errors of reconciles."""
        acts, steps = ACTS, 0
        while acts:
            options = self._options()
            if self._chance.random() < (ACTING_AT_AN_END if self._ending else ACTING):
                acts -= 1
                await self._act()
            elif self._chance.random() < WAITING:
                self._wait()
            elif options:
                await self._chance.choice(options)()
            elif not self._skip():
                acts -= 1
                await self._act()
            steps += 1
            assert steps < BOUND, "never through"
            self._watch()
        if self.user.graph is None:
            self.user.act()
        await self.calm()

    async def calm(self) -> None:
        """Run without faults and late reads until nothing is left to do."""
        self.network.over = True
        self._held_until.clear()
        await self._go_on(until=self._clock.now + CALM)

    async def repeat(self) -> list[str]:
        """The writes when everything is reconciled once more: none if the state is final."""
        writes, statuses = len(self.world.writes), self.world.statuses
        self.process.enqueue_all()
        await self._go_on(until=self._clock.now + REST)
        return self.world.writes[writes:] + ["status"] * (self.world.statuses - statuses)

    async def close(self) -> None:
        """Leave no task behind."""
        former = [*self._former, *await self.process.stop(hard=True)]
        for each in former:
            each.cancel()
        await asyncio.gather(*former, return_exceptions=True)
        self.network.close()

    async def _go_on(self, until: float) -> None:
        for _ in range(BOUND):
            if options := self._options():
                await self._chance.choice(options)()
            elif not self._skip() and not self.process.working:
                return
            self._watch()
            if self._clock.now > until:
                return
        raise AssertionError("never calm")

    def _options(self) -> list[Callable[[], Any]]:
        """The possible next steps; likelier ones are repeated."""
        return [
            *([self._read] * 4 if self._readable() else ()),
            *([self._call] * 6 if self.network.busy else ()),
            *([self._begin] * 3 if self.process.due else ()),
            *([self.network.arrive] if self.network.has_late else ()),
            *([self._control] * 2 if self.controllers.steps() else ()),
        ]

    async def _read(self) -> None:
        self.process.take(self._chance.choice(self._readable()).popleft())

    def _readable(self) -> list[deque[Word]]:
        now, held = self._clock.now, self._held_until
        return [words for resource, words in self.world.feed.items() if words and held.get(resource, now) <= now]

    async def _call(self) -> None:
        self.network.go_on()
        await self.process.settle()

    async def _begin(self) -> None:
        self.process.begin(self._chance.choice(self.process.due))
        await self.process.settle()

    async def _control(self) -> None:
        self._chance.choice(self.controllers.steps())()

    async def _act(self) -> None:
        if self.user.graph is not None and self._chance.random() < RESTARTS:
            hard = self._careful or self._chance.random() < 0.5
            self._former += await self.process.stop(hard=hard)
            while self._careful and self.network.has_late:
                await self.network.arrive()
            self.process = self._started()
        else:
            self.user.act()

    def _skip(self) -> bool:
        """If no one can do anything, let time pass until someone can. Returns False if no one ever will."""
        self.process.correct()
        if self.process.next_at is None and not any(self.world.feed.values()):
            return False
        self._wait()
        return True

    def _wait(self) -> None:
        held = [at for resource, at in self._held_until.items() if self.world.feed.get(resource)]
        nearest = min([*held, *([] if self.process.next_at is None else [self.process.next_at])], default=0.0)
        self._clock.now = max(self._clock.now + TICK, nearest)

    def _hold_back(self) -> None:
        """Deletions are read late; writes of users are not."""
        share, until = self._chance.choice(LATE), self._clock.now + self._chance.choice(DELAYS)
        late = [each for each in self.world.feed if self._chance.random() < share]
        self._held_until = {each: until for each in late if each != DYNAMO_GRAPH_DEPLOYMENTS.id}

    def _watch(self) -> None:
        if self.world.version == self._watched:
            return
        ending, self._ending = self._ending, self.world.is_ending()
        if self._ending and not ending and not self.network.over:
            self._hold_back()
        self._watched, serving = self.world.version, self.world.serving()
        for name in ALWAYS:
            if name in serving:
                self._serving.add(name)
            elif name in self._serving:
                self._serving.discard(name)
                self.outages.append(f"{name} at {self._clock.now:.2f}")


async def as_new(graph: KubeObject) -> World:
    """The objects of a graph that is created in its present form, without faults."""
    story = Story(0, careful=True)
    metadata = {name: graph["metadata"][name] for name in ("name", "namespace", "uid")}
    way = {name: value for name, value in objects.annotations(graph).items() if name == ENABLE_GROVE}
    new = {name: graph[name] for name in ("apiVersion", "kind", "spec")}
    try:
        story.world.put(copied({**new, "metadata": {**metadata, "annotations": way}}))
        await story.calm()
    finally:
        await story.close()
    return story.world
