"""Graphs of a request's profiling: which there are, and what identifies one as created for the request."""

from contextlib import suppress

from dynamo_shared.api import objects
from dynamo_shared.api.conversion import NotConvertible, convert
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import OPERATOR, labels
from dynamo_shared.api.registry import annotations as keys
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS


def points_of(pareto: list[KubeObject], selected: KubeObject, figures: KubeObject) -> list[KubeObject]:
    """Points in the order of their numbers; the selected one is put first where the front does not have it."""
    points = [
        {"config": each["config"], "figures": each.get("figures") or {}, "selected": each["config"] == selected}
        for each in pareto
    ]
    if not any(point["selected"] for point in points):
        points.insert(0, {"config": selected, "figures": figures, "selected": True})
    return points


def marked(obj: KubeObject, child: KubeObject, *, owner: KubeObject | None) -> KubeObject:
    """An object that is made for a request: in its namespace, with its labels, and the owner that it shall have."""
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
    """A graph of a request's result as it is created for the request: marked, and in the version that is stored.

    The operator 1.2 wrote results in v1alpha1. The API server refuses what cannot be converted.
    """
    with suppress(NotConvertible):
        config = convert(config, DYNAMO_GRAPH_DEPLOYMENTS.api_version)
    return marked(obj, config, owner=None)


def is_made_for(graph: KubeObject, obj: KubeObject) -> bool:
    """Whether a graph was made for a request: this one, and not an earlier one of the same name."""
    return bool(objects.annotations(graph).get(keys.REQUEST_UID) == obj["metadata"]["uid"])


def in_place_of(existing: KubeObject, graph: KubeObject) -> KubeObject:
    """A graph with the metadata of the one whose spec it replaces, and the labels and annotations of both."""
    metadata = {
        **existing["metadata"],
        "labels": {**objects.labels(existing), **objects.labels(graph)},
        "annotations": {**objects.annotations(existing), **objects.annotations(graph)},
    }
    return {**graph, "metadata": metadata}


def why_not_changed(existing: KubeObject, graph: KubeObject) -> str:
    """Why a graph cannot become that of another point, and what to do; empty where it can: components are fixed."""
    now, then = (
        [str(each.get("name")) for each in (obj.get("spec") or {}).get("components") or []] for obj in (existing, graph)
    )
    if {*now} == {*then}:
        return ""
    name = existing["metadata"]["name"]
    return (
        f"the point has other components ({', '.join(then)}) than DynamoGraphDeployment {name} ({', '.join(now)}), and "
        f"those of a graph cannot change: delete it (kubectl delete dgd {name}), and deploy the point again"
    )
