"""Step 5: graphs that move between Deployments and Grove run on both ways until all of the desired one serves.

Services and ways in have the same names on both ways, and another owner: components own them on the one, the graph on the
other. They change hands while they stay, so that clients keep their addresses. Only the graph moves them, either way, and its
components leave alone what the graph has: the two never fight.
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

#: What has the same name on both ways, and another owner.
_CHANGING_HANDS = frozenset(each.id for each in (SERVICES, INGRESSES, VIRTUAL_SERVICES))


def switch(plan: Plan, observed: Observed) -> Plan:
    """With what runs the graph on another way than is desired: component deployments and other sets, or all sets."""
    if plan.pod_clique_set is None:
        return replace(plan, outgoing=observed.sets)
    name = objects.name(plan.pod_clique_set)
    others = [each for each in observed.sets if objects.name(each) != name]
    return replace(plan, outgoing=[*observed.components.values(), *others])


def handed_down(plan: Plan, observed: Observed) -> list[KubeObject]:
    """Objects of a graph's components, as these want them, that the graph itself still owns from its time on Grove.

    Decided once the components are written: objects need an owner that exists.
    """
    held = {place for place in observed.children if place[0] in _CHANGING_HANDS}
    if plan.pod_clique_set is not None or not held:
        return []
    desired = {objects.name(child) for child in plan.desired if child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind}
    heirs = [each for name, each in observed.components.items() if name in desired]
    rendered = {place_of(child): child for heir in heirs for child in _children_of(heir, observed)}
    return [child for place, child in rendered.items() if place in held]


def _children_of(component: KubeObject, observed: Observed) -> Iterator[KubeObject]:
    around = render.ObservedComponent(claimed=observed.claimed.get(component["spec"].get("name", ""), NO_CLAIMS))
    try:
        yield from render.component_children(parse_component(component), observed.config, around)
    except (InvalidManifest, render.RenderError):
        return
