"""The graphs in the result of a request, and their creation: metadata that identifies them, and replacement."""

from contextlib import suppress

from dynamo_shared.api import objects
from dynamo_shared.api.conversion import NotConvertible, convert
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import OPERATOR, labels
from dynamo_shared.api.registry import annotations as keys
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS


def points_of(pareto: list[KubeObject], selected: KubeObject, figures: KubeObject) -> list[KubeObject]:
    """The points of the Pareto front, in the order of their numbers; first the selected point if it is not on the front."""
    points = [
        {"config": each["config"], "figures": each.get("figures") or {}, "selected": each["config"] == selected}
        for each in pareto
    ]
    if not any(point["selected"] for point in points):
        points.insert(0, {"config": selected, "figures": figures, "selected": True})
    return points


def marked(obj: KubeObject, child: KubeObject, *, owner: KubeObject | None) -> KubeObject:
    """An object to create for a request: with its namespace, labels and uid, and with the given owner reference."""
    metadata = {**child.get("metadata", {})}
    name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
    metadata["namespace"] = namespace
    metadata["labels"] = {
        **objects.labels(child),
        labels.REQUEST_NAME: name,
        labels.REQUEST_NAMESPACE: namespace,
        labels.MANAGED_BY: OPERATOR,
    }
    metadata["annotations"] = {**objects.annotations(child), keys.REQUEST_UID: obj["metadata"]["uid"]}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    return {**child, "metadata": metadata}


def graph_of(obj: KubeObject, config: KubeObject) -> KubeObject:
    """A graph to create from the configuration in a request's result, in the stored version.

    The operator 1.2 wrote results in v1alpha1. If the conversion fails, the API server will refuse the graph.
    """
    with suppress(NotConvertible):
        config = convert(config, DYNAMO_GRAPH_DEPLOYMENTS.api_version)
    return marked(obj, config, owner=None)


def is_created_for(graph: KubeObject, obj: KubeObject) -> bool:
    """Whether a graph was created for this request, by uid, and not for an earlier request with its name."""
    return bool(objects.annotations(graph).get(keys.REQUEST_UID) == obj["metadata"]["uid"])


def in_place_of(existing: KubeObject, graph: KubeObject) -> KubeObject:
    """A graph that replaces the spec of an existing one: with its metadata, and the labels and annotations of both."""
    metadata = {
        **existing["metadata"],
        "labels": {**objects.labels(existing), **objects.labels(graph)},
        "annotations": {**objects.annotations(existing), **objects.annotations(graph)},
    }
    return {**graph, "metadata": metadata}


def why_not_changed(existing: KubeObject, graph: KubeObject) -> str:
    """Why a graph cannot be replaced by that of another point (it has other components), and what to do; "" if it can."""
    now, then = (
        [str(each.get("name")) for each in (obj.get("spec") or {}).get("components") or []] for obj in (existing, graph)
    )
    if {*now} == {*then}:
        return ""
    name, namespace = existing["metadata"]["name"], existing["metadata"]["namespace"]
    return (
        f"the point has other components ({', '.join(then)}) than DynamoGraphDeployment {name} ({', '.join(now)}), and "
        f"those of a graph cannot change: delete it (kubectl delete dgd {name} -n {namespace}), and deploy the point again"
    )
