"""Replicas of adapted components: while a component of a graph has an adapter, the adapter's spec sets its replicas.

The graph's number is then only a copy, which the scaler writes, so that users and older programs read the same number in
both objects. All code that renders a graph uses this module, so that the rule exists once. Pure.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from dynamo_shared.api.min_available import min_available
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.replica_limits import too_few, too_many
from dynamo_shared.api.resources import POD_CLIQUE_SCALING_GROUPS, POD_CLIQUES
from dynamo_shared.api.untrusted.reading import mapping

#: `componentKind` in the status of a graph for components that Grove runs.
OF_GROVE = (POD_CLIQUES.kind, POD_CLIQUE_SCALING_GROUPS.kind)


class Difference(NamedTuple):
    """A component whose number in the graph differs from the adapter's; `before` is None if the graph has none."""

    component: str
    #: Position in `spec.components`.
    position: int
    before: int | None
    replicas: int


def is_of(adapter: KubeObject, graph: KubeObject) -> bool:
    """Whether the graph created the adapter: an adapter of that name with another owner has no effect.

    An adapter without a spec, which a user can store while admission is off, has no effect either.
    """
    owners = adapter["metadata"].get("ownerReferences", ()) if "spec" in adapter else ()
    return any(owner.get("controller") and owner["uid"] == graph["metadata"]["uid"] for owner in owners)


def owning(graph: KubeObject, adapters: Iterable[KubeObject]) -> dict[str, KubeObject]:
    """The adapters that own replicas, by component: created by the graph, for a component that enables one."""
    adapted = {each["name"] for each in graph["spec"].get("components") or () if each.get("scalingAdapter") is not None}
    return {
        component: adapter
        for adapter in adapters
        if is_of(adapter, graph) and (component := adapter["spec"]["dgdRef"]["componentName"]) in adapted
    }


def replicas_of(graph: KubeObject, owners: Mapping[str, KubeObject]) -> dict[str, int]:
    """Replicas of `owning` adapters, by component, without those with `refusals`."""
    refused = refusals(graph, owners)
    return {name: _number(adapter) for name, adapter in owners.items() if name not in refused}


def refusals(graph: KubeObject, owners: Mapping[str, KubeObject]) -> dict[str, str]:
    """Why the graph cannot have an adapter's replicas, by component: too many for a cluster, or fewer than minAvailable.

    `kubectl scale` and autoscalers can write such numbers, because no admission checks them.
    """
    least = least_replicas(graph)
    reasons = {
        name: too_many(_number(adapter)) or too_few(_number(adapter), least.get(name, 1))
        for name, adapter in owners.items()
    }
    return {name: reason for name, reason in reasons.items() if reason}


def least_replicas(graph: KubeObject) -> dict[str, int]:
    """`minAvailable` of the components that Grove runs; other components have no minimum."""
    run_by = mapping(mapping(graph.get("status")).get("components"))
    return {
        each["name"]: min_available(each)
        for each in graph["spec"].get("components") or ()
        if mapping(run_by.get(each["name"])).get("componentKind") in OF_GROVE
    }


def _number(adapter: KubeObject) -> int:
    return int(adapter["spec"]["replicas"])


def with_replicas(graph: KubeObject, replicas: Mapping[str, int]) -> KubeObject:
    """The graph with these replicas of its components; the same object if no number changes."""
    if not differences(graph, replicas):
        return graph
    components = [
        {**each, "replicas": replicas[each["name"]]} if each["name"] in replicas else each
        for each in graph["spec"]["components"]
    ]
    return {**graph, "spec": {**graph["spec"], "components": components}}


def differences(graph: KubeObject, replicas: Mapping[str, int]) -> list[Difference]:
    """Components whose replicas in the graph differ from these."""
    return [
        Difference(each["name"], index, each.get("replicas"), replicas[each["name"]])
        for index, each in enumerate(graph["spec"].get("components") or ())
        if each["name"] in replicas and each.get("replicas") != replicas[each["name"]]
    ]
