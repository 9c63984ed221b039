"""Giving a graph the numbers of its adapters: what to write, and whether somebody else wrote in between. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dynamo_shared.api.adapted import Difference
from dynamo_shared.api.objects import KubeObject

from dynamo_scaler.adapters.status import GRAPH_CHANGED, SEVERAL_WRITERS, Verdict
from dynamo_scaler.adapters.writers import OURS


def patch(graph: KubeObject, differences: Iterable[Difference]) -> list[KubeObject]:
    """A JSON patch of the graph that changes these numbers only, and nothing where it is another one by now.

    A successor of its name has adapters of its own, and whoever took an adapter away may have set the number with it.
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
    """Whether the graph's number may be somebody else's: the graph was in step, so who changed it must be asked.

    An adapter of the first generation has the number that the graph had, and one with `lastScaleTime` gave it its own.
    A graph that was applied without a number leaves it to the adapter.
    """
    was_in_step = adapter["metadata"].get("generation") == 1 or "lastScaleTime" in adapter.get("status", {})
    return was_in_step and difference.before is not None


def overwritten(difference: Difference, of_graph: Sequence[str], of_adapter: str) -> Verdict | None:
    """A conflict where the graph's number is not one that the platform wrote; names both writers."""
    if not of_graph or OURS.intersection(of_graph):
        return None
    return Verdict(
        True,
        GRAPH_CHANGED,
        f"{of_graph[0]} set {difference.before} replicas of {difference.component} in the graph, {of_adapter} "
        f"{difference.replicas} in the adapter: the adapter's number counts, and the graph has it again",
    )


def taking_turns(component: str, writers: tuple[str, str]) -> Verdict:
    """A conflict of two who write the same adapter."""
    return Verdict(
        True,
        SEVERAL_WRITERS,
        f"{writers[0]} and {writers[1]} take turns in setting the replicas of {component}: let one of them do it",
    )
