"""Objects that several owners request by one name: a model's Service, Services of a component and its Grove graph."""

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS

from dynamo_pod_builder import render
from dynamo_pod_builder.errors import NameTaken

#: Kinds that may own the Service of a model: components, and graphs on Grove. The first that requests it owns it.
_SHARERS = frozenset({DYNAMO_COMPONENT_DEPLOYMENTS.kind, DYNAMO_GRAPH_DEPLOYMENTS.kind})


def may_keep_owner(child: KubeObject, taken: NameTaken) -> bool:
    """Whether an object that another owner holds may stay with that owner: no event reports when the holder is deleted."""
    return render.is_shared(child) and taken.holder_kind in _SHARERS


def graph_uid(component: KubeObject) -> str:
    """Uid of the graph that a component belongs to: only that graph hands over what it owns. "" without a graph."""
    owner = objects.controller_of(component)
    return str(owner["uid"]) if owner is not None and owner["kind"] == DYNAMO_GRAPH_DEPLOYMENTS.kind else ""
