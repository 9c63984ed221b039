"""Objects that several owners ask for under one name: the Service of a model, and those of a component and its graph on Grove."""

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS

from dynamo_pod_builder import render
from dynamo_pod_builder.errors import NameTaken

#: Kinds of owners that the Service of a model may have: components, and graphs on Grove. The first that asks for it owns it.
_SHARERS = frozenset({DYNAMO_COMPONENT_DEPLOYMENTS.kind, DYNAMO_GRAPH_DEPLOYMENTS.kind})


def is_left_to(child: KubeObject, taken: NameTaken) -> bool:
    """Whether an object may as well be another's, who has it: no event reports when that one goes."""
    return render.is_shared(child) and taken.holder_kind in _SHARERS


def graph_uid(component: KubeObject) -> str:
    """Uid of the graph that a component belongs to: what that has is the graph's to hand over. "" without a graph."""
    owner = objects.controller_of(component)
    return str(owner["uid"]) if owner is not None and owner["kind"] == DYNAMO_GRAPH_DEPLOYMENTS.kind else ""
