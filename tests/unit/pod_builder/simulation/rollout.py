"""A graph whose workers are updated, scaled and restarted in a cluster of limited room, and the checks of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, cast

from dynamo_pod_builder.rollout import margins
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import (
    DEPLOYMENT_MAX_SURGE,
    DEPLOYMENT_MAX_UNAVAILABLE,
    DEPLOYMENT_STRATEGY,
    ENABLE_GROVE,
)
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS

from tests.building.clock import ManualClock
from tests.building.objects import copied
from tests.unit.render.building import CONFIG, component, graph

from .faults import Client, Network
from .pods import GPU, NOWHERE, Pods
from .process import Process
from .timed import TimedWorld
from .user import ENGINE, KEY
from .world import Word

WITH_GROUPS = replace(CONFIG, leader_worker_sets=True, ssh_secret="mpi-keys")
#: Without faults a cluster becomes calm within this time: several times ten minutes, for room. Seconds.
CALM = 4 * 3600.0
#: Seconds until the platform reads a change, by kind of object; changes of a kind stay in order.
DELAYS = (0.0, 0.3, 2.0, 8.0)
#: The limit of changes and reconciles at one moment.
BOUND = 300
TICK = 0.01


@dataclass(frozen=True)
class Worker:
    """A component of the graph: the size of one replica, and the margins of its updates."""

    name: str
    replicas: int = 1
    gpus: int = 1
    nodes: int = 1
    surge: str = "25%"
    unavailable: str = "25%"
    strategy: str = ""
    type_: str = "worker"

    def of_image(self, image: str) -> KubeObject:
        annotations = {DEPLOYMENT_MAX_SURGE: self.surge, DEPLOYMENT_MAX_UNAVAILABLE: self.unavailable}
        if self.strategy:
            annotations[DEPLOYMENT_STRATEGY] = self.strategy
        main: dict[str, Any] = {**(ENGINE if self.nodes > 1 else {}), "image": image}
        main["resources"] = {"limits": {GPU: str(self.gpus)} if self.gpus else {}}
        nodes: dict[str, Any] = {"multinode": {"nodeCount": self.nodes}} if self.nodes > 1 else {}
        pod: dict[str, Any] = {"pod": {"nodeSelector": NOWHERE}} if image == "nowhere" else {}
        return component(
            self.name, self.type_, replicas=self.replicas, main=main, annotations=annotations, **nodes, **pod
        )

    @property
    def is_exchanged(self) -> bool:
        """Whether its generations replace each other."""
        return self.type_ != "frontend"

    @property
    def margins(self) -> tuple[int, int]:
        annotations = {DEPLOYMENT_MAX_SURGE: self.surge, DEPLOYMENT_MAX_UNAVAILABLE: self.unavailable}
        return margins(self.name, self.replicas, annotations)

    def takes(self, replicas: int) -> int:
        return replicas * self.nodes * self.gpus


def room_for(workers: Sequence[Worker], *, exchange: bool = True) -> int:
    """The GPUs of these components, including the surge of an update."""
    return sum(each.takes(each.replicas + (each.margins[0] if exchange else 0)) for each in workers)


class _Direct:
    """A network that carries each call at once."""

    async def carry(self, call: Any, **_: Any) -> Any:
        return copied(await call)


class RolloutStory:
    """`workers` start with `img:1`, all serving. `watch` is called after each change of the world.

    With `late` reads the platform decides on outdated objects, except for its own writes.
    """

    def __init__(
        self, workers: Sequence[Worker], spare: int = 0, seed: int = 0, *, prompt: bool = False, late: bool = False
    ) -> None:
        self.clock = ManualClock(1000.0)
        self.world = TimedWorld(self.clock)
        self.workers = {each.name: each for each in workers}
        self.pods = Pods(self.world, Random(seed), [room_for(workers, exchange=False) + spare], prompt=prompt)
        self.image = "img:1"
        self.watch: Callable[[], None] = lambda: None
        self.moved_at = 0.0
        """when the pod-builder wrote for the last time, but for statuses"""
        self._written = 0
        self._watched = -1
        self.world.create_as_other(graph(*self._components(), annotations={ENABLE_GROVE: "false"}))
        self._chance, self._late = Random(seed), late
        self._held: dict[str, float] = {}
        """until when changes of a kind of object are not read, by resource id"""
        self.process = self._started()

    def _started(self) -> Process:
        client = Client(self.world, cast("Network", _Direct()))
        return Process(self.world, client, self.clock, WITH_GROUPS)

    @property
    def graph(self) -> KubeObject:
        return self.world.objects[DYNAMO_GRAPH_DEPLOYMENTS.id, KEY]

    @property
    def status(self) -> KubeObject:
        return self.graph.get("status", {})

    @property
    def ready(self) -> KubeObject:
        """The condition Ready."""
        return objects.condition(self.graph, "Ready") or {}

    @property
    def is_updated(self) -> bool:
        """Whether the graph is as its spec says, and no update of its workers is in progress."""
        of = (self.status.get("state"), self.status.get("observedGeneration"))
        rolling = (self.status.get("rollingUpdate") or {}).get("phase", "Completed")
        return of == ("successful", objects.generation(self.graph)) and rolling == "Completed"

    @property
    def promised(self) -> float:
        """The share of the graph's replicas that must serve at all times."""
        return min(1 - each.margins[1] / each.replicas for each in self.workers.values() if each.replicas)

    def share(self, serving: Mapping[str, Mapping[str, int]]) -> float:
        """The share of its replicas that serve: workers discover only those of their own generation."""
        desired = {name: each.replicas for name, each in self.workers.items() if each.is_exchanged and each.replicas}
        return sum(
            min((each.get(name, 0) / count for name, count in desired.items()), default=0.0)
            for generation, each in serving.items()
            if generation
        )

    @property
    def generation(self) -> str:
        """The hash of the desired workers; "" if none of them exist yet."""
        for each in self.world.stored(DYNAMO_COMPONENT_DEPLOYMENTS):
            hash_ = objects.labels(each).get(labels.WORKER_HASH, "")
            if hash_ and each["spec"]["podTemplate"]["spec"]["containers"][0]["image"] == self.image:
                return hash_
        return ""

    def leftovers(self) -> set[str]:
        """Component deployments and pods with another image than the graph's."""
        specs = {objects.name(each): each["spec"] for each in self.pods.all()}
        for each in self.world.stored(DYNAMO_COMPONENT_DEPLOYMENTS):
            specs[objects.name(each)] = each["spec"]["podTemplate"]["spec"]
        return {name for name, spec in specs.items() if spec["containers"][0]["image"] != self.image}

    def update(self, image: str) -> None:
        self.image = image
        self._respecify()

    def scale(self, name: str, replicas: int) -> None:
        self.workers[name] = replace(self.workers[name], replicas=replicas)
        self._respecify()

    def change(self, name: str, **fields: Any) -> None:
        self.workers[name] = replace(self.workers[name], **fields)
        self._respecify()

    def restart(self, id_: str, order: Sequence[str] = ()) -> None:
        strategy = {"strategy": {"type": "Sequential", "order": list(order)}} if order else {}
        self.world.change(
            DYNAMO_GRAPH_DEPLOYMENTS, KEY, lambda obj: obj["spec"].update(restart={"id": id_, **strategy})
        )

    async def catch_up(self) -> None:
        """Let controllers act on all decisions so far, so that none acts on the next change together with them."""
        self.pods.hurry()
        await self._settle()

    async def start_again(self) -> None:
        """The platform stops, and starts again with all existing objects."""
        await self.close()
        self._held.clear()
        self.world.publish_all()
        self.process = self._started()

    async def go_on(self, seconds: float) -> None:
        """Let that much time pass."""
        until = self.clock.now + seconds
        while await self._settle() and (at := self._next_at()) is not None and at <= until:
            self.clock.now = max(self.clock.now + TICK, at)
        self.clock.now = max(self.clock.now, until)
        await self._settle()

    async def calm(self) -> bool:
        """Let time pass until nothing is left to do. Returns whether that happened."""
        until = self.clock.now + CALM
        while await self._settle() and (at := self._next_at()) is not None:
            if at > until:
                return False
            self.clock.now = max(self.clock.now + TICK, at)
        return True

    async def repeat(self) -> list[str]:
        """The writes when everything is reconciled once more."""
        writes, statuses = len(self.world.writes), self.world.statuses
        self.process.enqueue_all()
        await self.go_on(300)
        return self.world.writes[writes:] + ["status"] * (self.world.statuses - statuses)

    async def close(self) -> None:
        await self.process.stop(hard=True)

    async def _settle(self) -> bool:
        """Do all work that is possible now."""
        for _ in range(BOUND):
            worked = self._read()
            for task in self.process.due:
                self.process.begin(task)
                worked = True
            while self.process.working:
                await self.process.settle()
            worked = self._read() or worked
            worked = self.pods.step() or worked
            if len(self.world.writes) != self._written:
                self._written, self.moved_at = len(self.world.writes), self.clock.now
            if self.world.version != self._watched:
                self._watched = self.world.version
                self.watch()
            if not worked:
                return True
        raise AssertionError(f"never calm: {self.world.writes[-20:]}")

    def _read(self) -> bool:
        words: list[Word] = []
        for resource, feed in self.world.feed.items():
            if feed and self._held.setdefault(resource, self.clock.now + self._delay(resource)) <= self.clock.now:
                del self._held[resource]
                words += feed
                feed.clear()
        for each in words:
            self.process.take(each)
        return bool(words)

    def _delay(self, resource: str) -> float:
        return self._chance.choice(DELAYS) if self._late and resource != DYNAMO_GRAPH_DEPLOYMENTS.id else 0.0

    def _next_at(self) -> float | None:
        self.process.correct()
        times = (self.process.next_at, self.pods.next_at, *self._held.values())
        return min((at for at in times if at is not None), default=None)

    def _components(self) -> list[KubeObject]:
        return [each.of_image(self.image) for each in self.workers.values()]

    def _respecify(self) -> None:
        components = self._components()
        self.world.change(DYNAMO_GRAPH_DEPLOYMENTS, KEY, lambda obj: obj["spec"].update(components=components))
