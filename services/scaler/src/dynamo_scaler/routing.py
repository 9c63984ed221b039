"""Which graph to reconcile after a change, and how soon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    PODS,
    SCALED_OBJECTS,
    ObjectKey,
    Resource,
)
from dynamo_shared.runtime.debounce import Debounce

from dynamo_scaler.adapters.pods import is_there

#: Several adapters of a graph that change together become one write. Seconds.
SETTLE = 0.02
#: Pods come and go in groups, and only their count is reported. Seconds.
SETTLE_PODS = 0.2


class Pace:
    """How long after a change its graph is reconciled: soon, and later where very many adapters change at once."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._debounce = Debounce(clock)

    def wait(
        self, resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None
    ) -> tuple[ObjectKey, float] | None:
        """The graph that a change concerns, and the seconds until its reconcile; None where nothing is to be done."""
        obj = new if new is not None else old
        if obj is None:
            return None
        namespace = key.namespace
        if resource == DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS:
            if _same(old, new, "spec", "ownerReferences", "deletionTimestamp"):
                return None
            return ObjectKey(namespace, obj["spec"]["dgdRef"]["name"]), SETTLE + self._debounce.after_one_more()
        if resource == DYNAMO_GRAPH_DEPLOYMENTS:
            if _same(old, new, "spec", "annotations", "deletionTimestamp") and _counts(old) == _counts(new):
                return None
            return key, SETTLE
        graph = obj["metadata"].get("labels", {}).get(labels.GRAPH_DEPLOYMENT_NAME)
        if not graph:
            return None
        if resource == PODS:
            if (old is not None and is_there(old)) == (new is not None and is_there(new)):
                return None
            return ObjectKey(namespace, graph), SETTLE_PODS
        if resource in (HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS):
            # Its status is its own; only its spec and metadata matter here.
            return None if _same(old, new, "spec", "labels", "annotations") else (ObjectKey(namespace, graph), 0.0)
        return None


def _same(old: KubeObject | None, new: KubeObject | None, *parts: str) -> bool:
    """Whether these parts, of the object or of its metadata, are as before."""
    if old is None or new is None or old["metadata"].get("uid") != new["metadata"].get("uid"):
        return False
    return all(
        old.get(part) == new.get(part) and old["metadata"].get(part) == new["metadata"].get(part) for part in parts
    )


def _counts(graph: KubeObject | None) -> Any:
    """The replicas in the graph's own status: the only count of components without pods of their own."""
    return ((graph or {}).get("status") or {}).get("components")
