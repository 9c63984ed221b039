"""Mirrors adapters' replicas into their graph: the patch, and whether another client wrote in between. Pure."""

from collections.abc import Iterable, Sequence

from dynamo_shared.api.adapted import Difference
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.wording import many

from dynamo_scaler.adapters.status import GRAPH_CHANGED, SEVERAL_WRITERS, ConditionState
from dynamo_scaler.adapters.writers import PLATFORM_MANAGERS


def patch(graph: KubeObject, differences: Iterable[Difference]) -> list[KubeObject]:
    """A JSON patch that changes only these numbers, and fails if the graph has changed meanwhile.

    A recreated graph of the same name has its own adapters, and a new number may come together with the deletion of an
    adapter.
    """
    metadata = graph["metadata"]
    operations: list[KubeObject] = [
        {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
        {"op": "test", "path": "/metadata/generation", "value": metadata["generation"]},
    ]
    for each in differences:
        place = f"/spec/components/{each.position}"
        operations.append({"op": "test", "path": f"{place}/name", "value": each.component})
        operations.append({"op": "add", "path": f"{place}/replicas", "value": each.replicas})
    return operations


def is_suspicious(adapter: KubeObject, difference: Difference) -> bool:
    """Whether another client may have set the graph's number: the graph was in sync, so its writer must be read.

    An adapter of the first generation has the number that the graph had; an adapter with `lastScaleTime` has set the
    graph's number. A graph that was applied without a number leaves it to the adapter.
    """
    was_in_step = adapter["metadata"].get("generation") == 1 or "lastScaleTime" in adapter.get("status", {})
    return was_in_step and difference.before is not None


def overwritten(difference: Difference, before: int, of_graph: Sequence[str], of_adapter: str) -> ConditionState | None:
    """The conflict that another client wrote the number `before` into the graph; names both writers."""
    if not of_graph or PLATFORM_MANAGERS.intersection(of_graph):
        return None
    return ConditionState(
        True,
        GRAPH_CHANGED,
        f"{of_graph[0]} set {many(before, 'replica')} of {difference.component} in the graph, {of_adapter} "
        f"{difference.replicas} in the adapter: the scaler reset the graph to the adapter's number",
    )


def alternating_writers(component: str, writers: tuple[str, str]) -> ConditionState:
    """The conflict of two writers of the same adapter."""
    return ConditionState(
        True,
        SEVERAL_WRITERS,
        f"{writers[0]} and {writers[1]} alternately set the replicas of {component}: use only one of them",
    )
