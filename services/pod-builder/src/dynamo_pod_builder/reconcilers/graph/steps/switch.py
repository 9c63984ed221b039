"""Step 5: a graph that moves between Deployments and Grove runs on both until everything on the desired one serves.

Services and routes have the same names on both, but different owners: components own them on Deployments, the graph on
Grove. They change owners without being recreated, so that clients keep their addresses. Only the graph moves them, in
both directions, and its components do not touch what the graph owns, so the two never conflict.
"""

from collections.abc import Iterator
from dataclasses import replace

from dynamo_shared.api import objects
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    INGRESSES,
    SERVICES,
    VIRTUAL_SERVICES,
)
from dynamo_shared.api.v1beta1 import parse_component

from dynamo_pod_builder import render
from dynamo_pod_builder.reconcilers.graph.observed import Observed, place_of
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.render.config import NO_CLAIMS

#: Kinds whose objects have the same name on both, but different owners.
_CHANGING_OWNERS = frozenset(each.id for each in (SERVICES, INGRESSES, VIRTUAL_SERVICES))


def switch(plan: Plan, observed: Observed) -> Plan:
    """The plan with the workloads on the other orchestrator: component deployments and other sets, or all sets."""
    if plan.pod_clique_set is None:
        return replace(plan, outgoing=observed.sets)
    name = objects.name(plan.pod_clique_set)
    others = [each for each in observed.sets if objects.name(each) != name]
    return replace(plan, outgoing=[*observed.components.values(), *others])


def moved_to_components(plan: Plan, observed: Observed) -> list[KubeObject]:
    """Objects of a graph's components, as the components render them, that the graph still owns from its time on Grove.

    Called after the components are written: an object needs an owner that exists.
    """
    held = {place for place in observed.children if place[0] in _CHANGING_OWNERS}
    if plan.pod_clique_set is not None or not held:
        return []
    desired = {objects.name(child) for child in plan.desired if child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind}
    components = [each for name, each in observed.components.items() if name in desired]
    rendered = {place_of(child): child for component in components for child in _children_of(component, observed)}
    return [child for place, child in rendered.items() if place in held]


def _children_of(component: KubeObject, observed: Observed) -> Iterator[KubeObject]:
    around = render.ObservedComponent(claimed=observed.claimed.get(component["spec"].get("name", ""), NO_CLAIMS))
    try:
        yield from render.component_children(parse_component(component), observed.config, around)
    except (InvalidManifest, render.RenderError):
        return
