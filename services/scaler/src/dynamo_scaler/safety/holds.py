"""Reasons to hold scaling: roll-outs and unschedulable pods. Pure."""

import hashlib
import heapq
import json
from collections.abc import Callable, Collection
from typing import NamedTuple

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.api.v1beta1.enums import UNFINISHED_UPDATE
from dynamo_shared.api.wording import many

ROLLOUT, CAPACITY, GRAPH_FAILED = "RolloutInProgress", "CapacityPending", "GraphFailed"
_RESTARTING = frozenset({"Pending", "Restarting"})
#: Largest number of names in a message.
_NAMED = 3


class Hold(NamedTuple):
    """The reason of a hold."""

    reason: str
    message: str


def rollout(graph: KubeObject, component: str, *, observed: bool) -> Hold | None:
    """The roll-out that holds scaling of a component in both directions, because the roll-out decides which pods stay.

    `observed`: whether the platform has acted on the graph's present spec, except replicas. Scaling itself is not a
    roll-out: a component whose new pods are still starting may scale again, in particular down.
    """
    status = graph.get("status") or {}
    if not observed:
        return Hold(ROLLOUT, "the platform has not acted on the latest change of the graph yet")
    phase = (status.get("rollingUpdate") or {}).get("phase")
    if phase in UNFINISHED_UPDATE:
        return Hold(ROLLOUT, "new worker pods are replacing the old ones")
    restart = status.get("restart") or {}
    if restart.get("phase") in _RESTARTING:
        under_way = ", ".join(restart.get("inProgress") or ()) or "its components"
        return Hold(ROLLOUT, f"a restart is in progress: {under_way}")
    counted = (status.get("components") or {}).get(component) or {}
    updated, total = counted.get("updatedReplicas"), counted.get("replicas", 0)
    if updated is not None and updated < total:
        return Hold(ROLLOUT, f"{total - updated} of its {many(total, 'pod')} still have the former template")
    return None


def failed(graph: KubeObject) -> Hold | None:
    """A failed graph gets no more replicas; it may get fewer."""
    status = graph.get("status") or {}
    if status.get("state") != "failed":
        return None
    ready = objects.condition(graph, "Ready") or {}
    return Hold(GRAPH_FAILED, f"the graph has failed: {ready.get('message') or 'its status does not say why'}")


def capacity(waiting: Collection[ObjectKey], message: Callable[[ObjectKey], str]) -> Hold | None:
    """Pods that wait for a node hold scaling up, because more pods would wait, too. Scaling down may help.

    `message` returns why a pod waits.
    """
    if not waiting:
        return None
    first = heapq.nsmallest(_NAMED, waiting)
    names = ", ".join(each.name for each in first)
    more = f" and {len(waiting) - _NAMED} more" if len(waiting) > _NAMED else ""
    wait = many(len(waiting), "pod") + (" waits" if len(waiting) == 1 else " wait")
    return Hold(CAPACITY, f"{wait} for a node ({names}{more}): {message(first[0])}")


def shape(graph: KubeObject) -> str:
    """Digest of a graph's spec without replicas: equal for graphs that differ only in scale."""
    spec = dict(graph["spec"])
    spec["components"] = [
        {name: value for name, value in each.items() if name != "replicas"} for each in spec.get("components") or ()
    ]
    return hashlib.blake2b(json.dumps(spec, sort_keys=True).encode(), digest_size=16).hexdigest()


class Shapes:
    """Remembers the shape of each graph on which the platform has acted, to distinguish scaling from a roll-out."""

    def __init__(self) -> None:
        self._observed: dict[str, tuple[int, str]] = {}
        #: By uid, of the version that was asked for last: a command asks for each of its components.
        self._latest: dict[str, tuple[str | None, str]] = {}

    def note(self, graph: KubeObject) -> None:
        """A graph was read. Cheap if the graph has not changed since its shape was computed."""
        uid, generation = graph["metadata"]["uid"], graph["metadata"].get("generation", 0)
        if _observed_generation(graph) == generation and self._observed.get(uid, (-1, ""))[0] != generation:
            self._observed[uid] = (generation, shape(graph))

    def forget(self, graph: KubeObject) -> None:
        """A graph is gone."""
        self._observed.pop(graph["metadata"]["uid"], None)
        self._latest.pop(graph["metadata"]["uid"], None)

    def is_observed(self, graph: KubeObject) -> bool:
        """Whether the platform has acted on the present spec, except replicas."""
        uid, generation = graph["metadata"]["uid"], graph["metadata"].get("generation", 0)
        if _observed_generation(graph) == generation:
            return True
        known = self._observed.get(uid)
        if known is None:
            return False
        version = graph["metadata"].get("resourceVersion")
        if version is None or self._latest.get(uid, ("", ""))[0] != version:
            self._latest[uid] = (version, shape(graph))
        return known[1] == self._latest[uid][1]


def _observed_generation(graph: KubeObject) -> int:
    return int((graph.get("status") or {}).get("observedGeneration") or 0)
