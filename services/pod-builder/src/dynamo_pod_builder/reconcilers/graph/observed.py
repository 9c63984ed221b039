"""The input of one reconcile of a graph: one frozen snapshot of the cache and one time, on which every step decides.

The answers to later writes are merged into it (`after`), so the status reflects the present state without another read.
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

from dynamo_pod_builder.co_owners import owns
from dynamo_pod_builder.render import ObservedComponent, RenderConfig
from dynamo_pod_builder.render.config import NEW_COMPONENT, RoleClaims
from dynamo_pod_builder.starts import NO_CHECKPOINTS, Catalogue

#: Id of a resource and name of an object. All objects are in one namespace.
Place: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Observed:
    """One graph, its children, and its surroundings. Read only."""

    #: The stored graph.
    graph: KubeObject
    now: datetime
    config: RenderConfig
    #: All objects that the graph owns.
    children: Mapping[Place, KubeObject] = field(default_factory=dict)
    #: The workloads that run the pods of component deployments, by the name of the component deployment.
    workloads: Mapping[str, KubeObject] = field(default_factory=dict)
    #: The cliques and scaling groups that Grove made from the graph's sets.
    cliques: Mapping[Place, KubeObject] = field(default_factory=dict)
    #: Cliques of scaling groups, by the place of their group.
    members: Mapping[Place, Sequence[KubeObject]] = field(default_factory=dict)
    #: Pods of workloads and cliques, by kind and name of the workload or clique.
    pods: Mapping[Place, Sequence[KubeObject]] = field(default_factory=dict)
    #: When pods registered with Dynamo in Kubernetes, by uid; known only while workers of several generations exist.
    registered: Mapping[str, datetime] = field(default_factory=dict)
    checkpoints: Catalogue = NO_CHECKPOINTS
    #: What the namespace provides for the pods of each component.
    around: ObservedComponent = NEW_COMPONENT
    #: GPUs that the main containers of its components claim, by component.
    claimed: Mapping[str, RoleClaims] = field(default_factory=dict)
    #: GPUs that its components request, if known.
    gpus: Mapping[str, GpuShape] = field(default_factory=dict)
    #: Component deployments of the graph, by name, computed once because the steps ask for them repeatedly. One without
    #: a spec, which a user can store without admission, is not included: it is treated like any other child that is not
    #: desired.
    components: Mapping[str, KubeObject] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        complete = [each for each in self._of(DYNAMO_COMPONENT_DEPLOYMENTS) if "spec" in each]
        object.__setattr__(self, "components", {objects.name(each): each for each in complete})

    @property
    def status(self) -> KubeObject:
        """Status of the graph; empty before the first one."""
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
        """The workload of a component deployment, by its name; None if either is being deleted, so that its pods go."""
        workload, dcd = self.workloads.get(component), self.components.get(component)
        return None if any(each is not None and objects.is_deleting(each) for each in (workload, dcd)) else workload

    def pods_of(self, workload: KubeObject | None) -> Sequence[KubeObject]:
        """Pods that a workload runs; empty without a workload."""
        return () if workload is None else self.pods.get(workload_place(workload), ())

    def after(self, written: Iterable[KubeObject], removed: Iterable[KubeObject] = ()) -> Self:
        """A copy with `written` objects as answered, without `removed` objects and those with another controller.

        If an object was replaced by another of its name, the workload or cliques of the old one are dropped, too.
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
            elif owns(self.graph, obj):
                children[place] = obj
            else:
                children.pop(place, None)
        for obj in removed:
            if not obj["metadata"].get("finalizers"):
                children.pop(place_of(obj), None)
        return replace(self, children=children, workloads=workloads, cliques=cliques)

    def _of(self, resource: Resource) -> list[KubeObject]:
        return [obj for (id_, _), obj in self.children.items() if id_ == resource.id]


def place_of(obj: KubeObject) -> Place:
    """The key of an object in an `Observed`."""
    return resources.of(obj).id, objects.name(obj)


def workload_place(workload: KubeObject) -> Place:
    """The key of a workload's pods in an `Observed`."""
    return workload.get("kind", DEPLOYMENTS.kind), objects.name(workload)
