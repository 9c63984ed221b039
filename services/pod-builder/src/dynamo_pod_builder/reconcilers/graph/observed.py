"""All that one reconcile of a graph knows: one frozen snapshot of the cache and one time, on which every step decides.

What is written afterwards is laid over it (`after`): a status is concluded from what is there now, without reading again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self, TypeAlias

from dynamo_shared.api import adapted, objects, resources
from dynamo_shared.api.gpus import GpuShape
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    POD_CLIQUE_SETS,
    Resource,
)

from dynamo_pod_builder.render import ObservedComponent, RenderConfig
from dynamo_pod_builder.render.config import NEW_COMPONENT, RoleClaims
from dynamo_pod_builder.starts import NO_CHECKPOINTS, Catalogue

#: Id of a resource, and the name of an object of it: all is of one namespace.
Place: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Observed:
    """One graph, what it has become so far, and what is around it. Read only."""

    #: As it is stored.
    graph: KubeObject
    now: datetime
    config: RenderConfig
    #: All that the graph controls.
    children: Mapping[Place, KubeObject] = field(default_factory=dict)
    #: What runs the pods of component deployments, by the name of these.
    workloads: Mapping[str, KubeObject] = field(default_factory=dict)
    #: What Grove made of the graph's sets: cliques and scaling groups.
    cliques: Mapping[Place, KubeObject] = field(default_factory=dict)
    #: Cliques of scaling groups, by the place of their group.
    members: Mapping[Place, Sequence[KubeObject]] = field(default_factory=dict)
    #: Pods of workloads and cliques, by kind and name of these.
    pods: Mapping[Place, Sequence[KubeObject]] = field(default_factory=dict)
    #: When pods registered with Dynamo in Kubernetes, by uid; known while workers are exchanged.
    registered: Mapping[str, datetime] = field(default_factory=dict)
    checkpoints: Catalogue = NO_CHECKPOINTS
    #: What the namespace has for the pods of each component.
    around: ObservedComponent = NEW_COMPONENT
    #: GPUs that the main containers of its components claim, by component.
    claimed: Mapping[str, RoleClaims] = field(default_factory=dict)
    #: GPUs that its components ask for, of those of which that is known.
    gpus: Mapping[str, GpuShape] = field(default_factory=dict)
    #: Component deployments of the graph, by name: each step asks for them, some of them again and again. One without a spec,
    #: which a user can store where admission is off, is a child like any other that is not desired.
    components: Mapping[str, KubeObject] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        there = [each for each in self._of(DYNAMO_COMPONENT_DEPLOYMENTS) if "spec" in each]
        object.__setattr__(self, "components", {objects.name(each): each for each in there})

    @property
    def status(self) -> KubeObject:
        """Status of the graph; empty before its first one."""
        status_: KubeObject = self.graph.get("status", {})
        return status_

    @property
    def sets(self) -> list[KubeObject]:
        """PodCliqueSets of the graph."""
        return self._of(POD_CLIQUE_SETS)

    @property
    def graph_as_scaled(self) -> KubeObject:
        """The graph with the replicas of its adapters."""
        owners = adapted.owning(self.graph, self._of(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS))
        return adapted.with_replicas(self.graph, adapted.replicas_of(self.graph, owners))

    def staying(self, component: str) -> KubeObject | None:
        """What runs the pods of a component deployment, by its name; None where these go, since one of both is being deleted."""
        workload, dcd = self.workloads.get(component), self.components.get(component)
        return None if any(each is not None and objects.is_deleting(each) for each in (workload, dcd)) else workload

    def pods_of(self, workload: KubeObject | None) -> Sequence[KubeObject]:
        """Pods that a workload runs; none before there is one."""
        return () if workload is None else self.pods.get(workload_place(workload), ())

    def after(self, written: Iterable[KubeObject], removed: Iterable[KubeObject] = ()) -> Self:
        """The same with objects as the API server answered, and without those that are gone or have another controller.

        What ran for one that another of its name follows goes with it.
        """
        children, workloads, cliques = dict(self.children), dict(self.workloads), dict(self.cliques)
        for obj in written:
            place = place_of(obj)
            if place in children and objects.uid(children[place]) != objects.uid(obj):
                if place[0] == POD_CLIQUE_SETS.id:
                    cliques.clear()
                elif place[0] == DYNAMO_COMPONENT_DEPLOYMENTS.id:
                    workloads.pop(objects.name(obj), None)
            if place in cliques:
                cliques[place] = obj
            elif objects.controls(self.graph, obj):
                children[place] = obj
            else:
                children.pop(place, None)
        for obj in removed:
            if not (objects.is_deleting(obj) or obj["metadata"].get("finalizers")):
                children.pop(place_of(obj), None)
        return replace(self, children=children, workloads=workloads, cliques=cliques)

    def _of(self, resource: Resource) -> list[KubeObject]:
        return [obj for (id_, _), obj in self.children.items() if id_ == resource.id]


def place_of(obj: KubeObject) -> Place:
    """Where an object stands in an `Observed`."""
    return resources.of(obj).id, objects.name(obj)


def workload_place(workload: KubeObject) -> Place:
    """Where the pods of a workload stand in an `Observed`."""
    return workload.get("kind", DEPLOYMENTS.kind), objects.name(workload)
