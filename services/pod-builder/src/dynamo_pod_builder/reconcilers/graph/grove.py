"""What Grove makes of a PodCliqueSet: a clique, or a scaling group, for each component. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import POD_CLIQUE_SCALING_GROUPS, POD_CLIQUES, Resource

from dynamo_pod_builder.reconcilers.graph.observed import Place


class GroveWorkload(NamedTuple):
    """What runs one component."""

    component: str
    resource: Resource
    name: str
    replicas: int

    @property
    def place(self) -> Place:
        """Where it stands in an `Observed`."""
        return self.resource.id, self.name


def workloads(pod_clique_set: KubeObject) -> Iterator[GroveWorkload]:
    """Each clique that stands alone, and each scaling group."""
    template, prefix = pod_clique_set["spec"]["template"], f"{objects.name(pod_clique_set)}-0"
    cliques = {each["name"]: each for each in template["cliques"]}
    grouped: set[str] = set()
    for group in template.get("podCliqueScalingGroups", ()):
        grouped.update(group["cliqueNames"])
        component = cliques[group["cliqueNames"][0]]["labels"][labels.COMPONENT]
        yield GroveWorkload(component, POD_CLIQUE_SCALING_GROUPS, f"{prefix}-{group['name']}", group["replicas"])
    for name, each in cliques.items():
        if name not in grouped:
            component = each["labels"][labels.COMPONENT]
            yield GroveWorkload(component, POD_CLIQUES, f"{prefix}-{name}", each["spec"]["replicas"])


def to_scale(pod_clique_set: KubeObject, cliques: Mapping[Place, KubeObject]) -> Iterator[tuple[KubeObject, int]]:
    """Cliques and groups whose replicas are not those of the set: Grove copies them once, and then leaves them to autoscalers."""
    for each in workloads(pod_clique_set):
        there = cliques.get(each.place)
        if there is not None and there.get("spec", {}).get("replicas") != each.replicas:
            yield there, each.replicas


def order(sets: Sequence[KubeObject]) -> tuple[str, ...]:
    """Names of the cliques that there are, as they stand: Grove takes another order for another graph."""
    return tuple(each["name"] for item in sets for each in item.get("spec", {}).get("template", {}).get("cliques", ()))
