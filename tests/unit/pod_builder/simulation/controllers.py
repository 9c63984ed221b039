"""Other controllers of a story, one step at a time: those of Kubernetes, Grove and LeaderWorkerSets, and the scaler."""

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import TypeAlias

from dynamo_pod_builder.reconcilers.graph import grove
from dynamo_pod_builder.reconcilers.graph.grove import GroveWorkload
from dynamo_shared.api import adapted, objects, resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, POD_CLIQUE_SETS, ObjectKey, Resource, key_of

from tests.building.objects import controlled_by, copied, object_of

from .world import WORKLOADS, World

Step: TypeAlias = Callable[[], None]

FINALIZER = "grove.io/podcliqueset.grove.io"
#: A workload's status names the template of its pods; pods of another template do not count as updated.
OF_TEMPLATE = "template"


class Controllers:
    """`steps` are all possible next steps, one write each. A step is valid until the world changes."""

    def __init__(self, world: World, chance: Random) -> None:
        self._world = world
        self._chance = chance
        self._known: tuple[int, list[Step]] = (-1, [])

    def steps(self) -> list[Step]:
        if self._known[0] != self._world.version:
            self._known = (self._world.version, list(self._steps()))
        return self._known[1]

    def _steps(self) -> Iterator[Step]:
        for obj in self._world.of_kinds(WORKLOADS):
            if obj.get("status") != _served(obj):
                yield partial(self._roll, obj)
        for obj in self._world.stored(POD_CLIQUE_SETS):
            yield from self._ends(obj) if objects.is_deleting(obj) else self._grows(obj)
        for graph in self._world.stored(DYNAMO_GRAPH_DEPLOYMENTS):
            yield from self._copies_replicas(graph)
        for obj in self._world.orphans():
            if not objects.is_deleting(obj):
                yield partial(self._world.end, resources.of(obj), key_of(obj))

    def _roll(self, workload: KubeObject) -> None:
        """Pods follow the workload: either at once, or first their number is reported and then they serve."""
        before, after = workload.get("status", {}), _served(workload)
        if self._chance.random() < 0.5:
            serving = min(before.get("availableReplicas", 0), after["replicas"])
            slow = {
                **after,
                "updatedReplicas": after["replicas"] if before.get(OF_TEMPLATE) == after[OF_TEMPLATE] else 0,
                "availableReplicas": serving,
                "readyReplicas": serving,
                "conditions": [{"type": "Available", "status": str(serving >= after["replicas"])}],
            }
            after = slow if slow != before else after
        self._write(workload, partial(_having, "status", after))

    def _ends(self, pod_clique_set: KubeObject) -> Iterator[Step]:
        """Grove deletes the cliques of a set one by one, then removes its finalizer from the set."""
        for each in self._world.owned(pod_clique_set)[:1]:
            yield partial(self._world.end, resources.of(each), key_of(each))
            return
        yield partial(self._write, pod_clique_set, lambda obj: obj["metadata"].pop("finalizers"))

    def _grows(self, pod_clique_set: KubeObject) -> Iterator[Step]:
        """Grove adds its finalizer, creates and changes cliques, then reports. It copies replicas only at creation."""
        if not pod_clique_set["metadata"].get("finalizers"):
            yield partial(self._write, pod_clique_set, lambda obj: obj["metadata"].update(finalizers=[FINALIZER]))
        desired = {(each.resource, each.name): each for each in grove.workloads(pod_clique_set)}
        there = {(resources.of(each), objects.name(each)): each for each in self._world.owned(pod_clique_set)}
        changes = [
            *(partial(self._world.end, *_place(each)) for place, each in there.items() if place not in desired),
            *(self._changes(pod_clique_set, each, there.get(place)) for place, each in desired.items()),
        ]
        if possible := [each for each in changes if each is not None]:
            yield possible[0]
        if possible or there.keys() != desired.keys():
            return
        status = {"observedGeneration": objects.generation(pod_clique_set), "currentGenerationHash": "h"}
        if pod_clique_set.get("status") != status:
            yield partial(self._write, pod_clique_set, partial(_having, "status", status))

    def _changes(self, pod_clique_set: KubeObject, desired: GroveWorkload, there: KubeObject | None) -> Step | None:
        cliques = pod_clique_set["spec"]["template"]["cliques"]
        of_name = {f"{objects.name(pod_clique_set)}-0-{each['name']}": each for each in cliques}
        clique = of_name.get(desired.name, {"spec": {}, "labels": cliques[0]["labels"]})
        spec = {name: value for name, value in clique["spec"].items() if name != "replicas"}
        key = ObjectKey(objects.namespace(pod_clique_set), desired.name)
        if there is None:
            # A clique of another set waits for the garbage collector.
            if (desired.resource.id, key) in self._world.objects:
                return None
            made = _clique(pod_clique_set, desired, {**spec, "replicas": desired.replicas}, clique["labels"])
            return partial(self._world.create_as_other, made)
        if objects.is_deleting(there) or {**spec, "replicas": there["spec"]["replicas"]} == there["spec"]:
            return None
        return partial(self._write, there, lambda obj: obj.update(spec={**spec, "replicas": obj["spec"]["replicas"]}))

    def _copies_replicas(self, graph: KubeObject) -> Iterator[Step]:
        """The scaler copies the numbers of adapters into the graph."""
        adapters = self._world.of_kinds(["DynamoGraphDeploymentScalingAdapter"])
        if differences := adapted.differences(graph, adapted.replicas_of(graph, adapted.owning(graph, adapters))):

            def copy(obj: KubeObject) -> None:
                for each in differences:
                    obj["spec"]["components"][each.position]["replicas"] = each.replicas

            yield partial(self._write, graph, copy)

    def _write(self, obj: KubeObject, change: Callable[[KubeObject], object]) -> None:
        self._world.change(*_place(obj), change)


def _place(obj: KubeObject) -> tuple[Resource, ObjectKey]:
    return resources.of(obj), key_of(obj)


def _having(field: str, value: KubeObject, obj: KubeObject) -> None:
    obj[field] = copied(value)


def _served(workload: KubeObject) -> KubeObject:
    """The status of a workload whose pods all are as desired."""
    spec = workload["spec"]
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return {
        **dict.fromkeys(counts, spec.get("replicas", 1)),
        "observedGeneration": objects.generation(workload),
        "conditions": [{"type": "Available", "status": "True"}],
        OF_TEMPLATE: str(spec.get("template") or spec.get("leaderWorkerTemplate") or spec.get("podSpec")),
        **({"currentPodTemplateHash": "x"} if workload["kind"] == "PodClique" else {}),
    }


def _clique(pod_clique_set: KubeObject, made: GroveWorkload, spec: KubeObject, of_clique: KubeObject) -> KubeObject:
    return object_of(
        made.resource,
        made.name,
        objects.namespace(pod_clique_set),
        ownerReferences=[controlled_by(pod_clique_set)],
        labels={**of_clique, labels.COMPONENT: made.component},
        spec=copied(spec),
    )
