"""Graphs that move between Deployments and Grove: the new way is made beside the old one, which goes when all of the new serves.

Services and ways in have the same names on both ways, and another owner: components own them on the one, the graph on the
other. They change hands while they stay, so that clients keep their addresses. Only the graph moves them, either way, and its
components leave alone what the graph has: the two never fight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dynamo_shared.api import resources
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    INGRESSES,
    POD_CLIQUE_SETS,
    SERVICES,
    VIRTUAL_SERVICES,
)
from dynamo_shared.api.v1beta1 import parse_component
from dynamo_shared.bus.cache import ObjectCache

from dynamo_pod_builder import render
from dynamo_pod_builder.applying import controller_of
from dynamo_pod_builder.children import children
from dynamo_pod_builder.status.graph import Generation
from dynamo_pod_builder.status.workload import readiness

#: What has the same name on both ways, and another owner.
_CHANGING_HANDS = (SERVICES, INGRESSES, VIRTUAL_SERVICES)


def graph_uid(component: KubeObject) -> str:
    """Uid of the graph that a component belongs to: what that has is the graph's to hand over. "" without a graph."""
    owner = controller_of(component)
    return str(owner["uid"]) if owner is not None and owner["kind"] == DYNAMO_GRAPH_DEPLOYMENTS.kind else ""


def outgoing(cache: ObjectCache, graph: KubeObject, pod_clique_set: KubeObject | None) -> list[KubeObject]:
    """What runs a graph on another way than it is wanted on: with a `pod_clique_set`, its components and other sets."""
    sets = children(cache, POD_CLIQUE_SETS, graph)
    if pod_clique_set is None:
        return sets
    name = pod_clique_set["metadata"]["name"]
    others = [each for each in sets if each["metadata"]["name"] != name]
    return [*children(cache, DYNAMO_COMPONENT_DEPLOYMENTS, graph), *others]


def uids(objects: Iterable[KubeObject]) -> frozenset[str]:
    """Uids of objects."""
    return frozenset(each["metadata"]["uid"] for each in objects)


def is_over(parts: Mapping[str, Sequence[Generation]]) -> bool:
    """Whether everything that is wanted serves, so that what served before can go. `parts` are by component."""
    current = [part for generations in parts.values() for part in generations if part.current]
    return all(part.failure is None and readiness(part.workload).ready for part in current)


def inherited(
    cache: ObjectCache, graph: KubeObject, wanted: Iterable[KubeObject], config: render.RenderConfig
) -> list[KubeObject]:
    """Objects of a graph's components, as these want them, that the graph itself still owns from its time on Grove."""
    held = {_name(each) for resource in _CHANGING_HANDS for each in children(cache, resource, graph)}
    if not held:
        return []
    names = {child["metadata"]["name"] for child in wanted if child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind}
    heirs = [each for each in children(cache, DYNAMO_COMPONENT_DEPLOYMENTS, graph) if each["metadata"]["name"] in names]
    made = {_name(child): child for heir in heirs for child in _wanted_by(heir, config)}
    return [child for name, child in made.items() if name in held]


def _wanted_by(component: KubeObject, config: render.RenderConfig) -> Iterator[KubeObject]:
    try:
        yield from render.component_children(parse_component(component), config)
    except (InvalidManifest, render.RenderError):
        return


def _name(obj: KubeObject) -> tuple[str, str]:
    return resources.of(obj).id, obj["metadata"]["name"]
