"""Users of a story: they change, scale, move to and from Grove, delete and damage graphs of two or three components."""

from functools import partial
from random import Random
from typing import Any

from dynamo_shared.api import objects, resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import ENABLE_GROVE
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey, key_of

from tests.unit.render.building import component, graph

from .world import World

KEY = ObjectKey("ns", "graph")
#: The components that each graph has.
ALWAYS = ("Front", "One")
ENGINE = {
    "command": ["python3", "-m", "dynamo.vllm"],
    "args": ["--model", "m"],
    "resources": {"limits": {"nvidia.com/gpu": "8"}},
}
ADAPTERS = ("DynamoGraphDeploymentScalingAdapter",)
RUNS = ("Deployment", "DynamoComponentDeployment", "LeaderWorkerSet", "PodCliqueSet")
CLIQUES = ("PodClique", "PodCliqueScalingGroup")
PARTS = ("Service", "ServiceAccount", "RoleBinding", "ConfigMap")


class User:
    """`careful` users end nothing that serves: they set no replicas of 0 and touch no object of the platform."""

    def __init__(self, world: World, chance: Random, *, careful: bool) -> None:
        self._world = world
        self._chance = chance
        self._least = 1 if careful else 0
        careless = (
            self._respecify,
            self._delete,
            self._rescale,
            self._set_replicas,
            self._remove,
            self._remove,
            self._relabel,
        )
        self._ways = (self._respecify, *[self._move] * (8 if careful else 2), *(() if careful else careless))

    def act(self) -> None:
        """Make one change; create the graph if it does not exist."""
        adapters = self._world.of_kinds(ADAPTERS)
        if self.graph is None:
            annotations = self._chance.choice([{}, {ENABLE_GROVE: "false"}])
            self._world.create_as_other(graph(*self._components(), annotations=annotations))
        elif adapters and self._chance.random() < 0.3:
            replicas = self._chance.randint(self._least, 3)
            self._change(adapters[0], partial(_scaled, replicas))
        else:
            self._chance.choice(self._ways)()

    @property
    def graph(self) -> KubeObject | None:
        """The graph in its present form."""
        return self._world.objects.get((DYNAMO_GRAPH_DEPLOYMENTS.id, KEY))

    def _components(self) -> list[KubeObject]:
        image, chance = self._image, self._chance
        adapter: dict[str, Any] = {"scalingAdapter": {}} if chance.random() < 0.8 else {}
        replicas = chance.randint(self._least, 2)
        parts = [
            component("Front", "frontend", replicas=chance.randint(1, 2), main={"image": image()}),
            component("One", replicas=replicas, main={**ENGINE, "image": image()}, **adapter),
        ]
        if chance.random() < 0.4:
            nodes: dict[str, Any] = {"multinode": {"nodeCount": 2}} if chance.random() < 0.5 else {}
            parts.append(component("Two", replicas=1, main={**ENGINE, "image": image()}, **nodes))
        return parts

    def _image(self) -> str:
        return f"img:{self._chance.choice('12')}"

    def _respecify(self) -> None:
        components = self._components()
        self._world.change(DYNAMO_GRAPH_DEPLOYMENTS, KEY, lambda obj: obj["spec"].update(components=components))

    def _move(self) -> None:
        self._world.change(DYNAMO_GRAPH_DEPLOYMENTS, KEY, _moved)

    def _delete(self) -> None:
        self._world.end(DYNAMO_GRAPH_DEPLOYMENTS, KEY)

    def _set_replicas(self) -> None:
        position, replicas = self._chance.randrange(len(ALWAYS)), self._chance.randint(0, 3)
        self._world.change(
            DYNAMO_GRAPH_DEPLOYMENTS, KEY, lambda obj: obj["spec"]["components"][position].update(replicas=replicas)
        )

    def _rescale(self) -> None:
        if there := self._world.of_kinds((*RUNS[:3], *CLIQUES)):
            self._change(self._chance.choice(there), partial(_scaled, self._chance.randint(0, 3)))

    def _remove(self) -> None:
        if there := self._world.of_kinds((*RUNS, *PARTS, "PodClique")):
            chosen = self._chance.choice(there)
            self._world.end(resources.of(chosen), key_of(chosen))

    def _relabel(self) -> None:
        if there := self._world.of_kinds((*RUNS, "Service")):
            self._change(self._chance.choice(there), lambda obj: obj["metadata"].update(labels={}))

    def _change(self, obj: KubeObject, change: Any) -> None:
        self._world.change(resources.of(obj), key_of(obj), change)


def _scaled(replicas: int, obj: KubeObject) -> None:
    obj["spec"]["replicas"] = replicas


def _moved(obj: KubeObject) -> None:
    """Move the graph to Grove, or away from it."""
    annotations = dict(objects.annotations(obj))
    if annotations.pop(ENABLE_GROVE, None) is None:
        annotations[ENABLE_GROVE] = "false"
    obj["metadata"]["annotations"] = annotations
