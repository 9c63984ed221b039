"""Writes the condition `Planning`, which is all of a graph's status that is the planner's."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from dynamo_shared.api import objects
from dynamo_shared.api.conditions import PLANNING, condition, find
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, key_of
from dynamo_shared.kube import KubeClient, get_if_present
from dynamo_shared.kube.errors import Conflict, NotFound

#: A graph whose status changes faster than it is read gets its condition with the next report.
TRIES = 3


class PlanningCondition(NamedTuple):
    """What the condition says."""

    status: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ConditionWriter:
    """Writes it to exactly the graph that it was concluded from."""

    kube: KubeClient
    now: Callable[[], datetime]

    async def write(self, graph: KubeObject, desired: PlanningCondition | None) -> None:
        """Write the condition, None removes it; nothing for a graph that is gone.

        Raises Conflict where the graph changes all the time, and KubeError where the API server is away.
        """
        uid = objects.uid(graph)
        for left in reversed(range(TRIES)):
            conditions = self._conditions(graph, desired)
            if conditions is None:
                return
            try:
                await self.kube.apply_status(DYNAMO_GRAPH_DEPLOYMENTS, _patch(graph, conditions))
            except NotFound:
                return
            except Conflict:
                if not left:
                    raise
            else:
                return
            now = await get_if_present(self.kube, DYNAMO_GRAPH_DEPLOYMENTS, key_of(graph))
            if now is None or objects.uid(now) != uid:
                return
            graph = now

    def _conditions(self, graph: KubeObject, desired: PlanningCondition | None) -> list[KubeObject] | None:
        """None where the graph has the condition as it should be."""
        previous = (graph.get("status") or {}).get("conditions", [])
        present = find(previous, PLANNING)
        if desired is None:
            return None if present is None else []
        made = condition(
            previous,
            PLANNING,
            status=desired.status,
            reason=desired.reason,
            message=desired.message,
            generation=graph["metadata"].get("generation", 0),
            now=self.now(),
        )
        return None if present == made else [made]


def _patch(graph: KubeObject, conditions: list[KubeObject]) -> KubeObject:
    metadata = graph["metadata"]
    return {
        **DYNAMO_GRAPH_DEPLOYMENTS.type_meta,
        # Of custom resources the API server ignores the uid here: only the version keeps a successor of the name apart.
        "metadata": {each: metadata[each] for each in ("name", "namespace", "resourceVersion")},
        "status": {"conditions": conditions},
    }
