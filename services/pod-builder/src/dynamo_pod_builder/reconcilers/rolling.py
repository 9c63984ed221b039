"""A graph's wanted component deployments, beside the worker generations that are there: what to write this time.

One of the following can be the case for a worker component:
1. Nothing of it is there, or only the wanted generation: it gets the replicas of the spec.
2. Other generations are there: both move one step (`rollout.step`); the others are deleted once the wanted one serves.
3. The same, and the component's strategy is Recreate: the others go first (`rollout.replace_all`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dynamo_shared.api.conditions import timestamp
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import DEPLOYMENT_STRATEGY
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS

from dynamo_pod_builder.render.deployment import RECREATE
from dynamo_pod_builder.rollout import Replicas, margins, replace_all, step
from dynamo_pod_builder.status.workload import ready_replicas, replicas_left

IN_PROGRESS, COMPLETED = "InProgress", "Completed"


@dataclass(frozen=True, slots=True)
class Rollout:
    """What one reconcile of a graph writes."""

    wanted: Sequence[KubeObject]
    #: Leftover DCDs, and the replicas that each should have now.
    drain: Sequence[tuple[KubeObject, int]] = ()
    #: uids of leftovers that still serve.
    kept: Sequence[str] = ()
    components: Sequence[str] = ()
    #: `status.rollingUpdate`.
    status: dict[str, Any] | None = None
    started: bool = False
    completed: bool = False


def roll(
    graph: KubeObject,
    wanted: Sequence[KubeObject],
    present: Sequence[KubeObject],
    workload_of: Callable[[KubeObject], KubeObject | None],
    now: datetime,
) -> Rollout:
    """Decide this step. `present` are the graph's DCDs, `workload_of` gives what runs the pods of one."""
    previous: dict[str, Any] | None = graph.get("status", {}).get("rollingUpdate")
    by_name = {dcd["metadata"]["name"]: dcd for dcd in present}
    leftovers: dict[str, list[KubeObject]] = {}
    names = {child["metadata"]["name"] for child in wanted}
    workers = {_marks(child).get(labels.COMPONENT) for child in wanted if labels.WORKER_HASH in _marks(child)}
    for dcd in present:
        component = _marks(dcd).get(labels.COMPONENT)
        # Workers from before there were hashes have none.
        if dcd["metadata"]["name"] not in names and (labels.WORKER_HASH in _marks(dcd) or component in workers):
            leftovers.setdefault(component or "", []).append(dcd)
    new: list[KubeObject] = []
    drain: list[tuple[KubeObject, int]] = []
    moving: list[str] = []
    finished = True
    for child in wanted:
        component = child["metadata"].get("labels", {}).get(labels.COMPONENT)
        old = leftovers.get(component, []) if child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind else []
        if not old:
            new.append(child)
            continue
        moving.append(component)
        desired = child["spec"].get("replicas", 1)
        marks = _template_annotations(child)
        there = _replicas(child["metadata"]["name"], by_name.get(child["metadata"]["name"]), workload_of)
        before = [_replicas(dcd["metadata"]["name"], dcd, workload_of) for dcd in old]
        if marks.get(DEPLOYMENT_STRATEGY) == RECREATE:
            next_ = replace_all(desired, there, before)
        else:
            next_ = step(desired, there, before, *margins(desired, marks))
        finished = finished and next_.done
        new.append({**child, "spec": {**child["spec"], "replicas": next_.new}})
        drain += [
            (dcd, next_.old[dcd["metadata"]["name"]])
            for dcd in old
            if dcd["spec"].get("replicas", 1) != next_.old[dcd["metadata"]["name"]]
        ]
    if not moving:
        return Rollout(new, status=_ended(previous, [], now), completed=_active(previous))
    if finished:
        return Rollout(new, components=moving, status=_ended(previous, moving, now), completed=True)
    started = not _active(previous)
    return Rollout(
        new,
        drain=drain,
        kept=[dcd["metadata"]["uid"] for part in leftovers.values() for dcd in part],
        components=moving,
        status={
            "phase": IN_PROGRESS,
            "startTime": timestamp(now) if started or previous is None else previous["startTime"],
        },
        started=started,
    )


def _active(previous: Mapping[str, Any] | None) -> bool:
    return previous is not None and previous.get("phase") == IN_PROGRESS


def _ended(previous: dict[str, Any] | None, components: Sequence[str], now: datetime) -> dict[str, Any] | None:
    if previous is None or not _active(previous):
        return previous
    return {
        "phase": COMPLETED,
        "startTime": previous["startTime"],
        "endTime": timestamp(now),
        "updatedComponents": sorted(components),
    }


def _replicas(name: str, dcd: KubeObject | None, workload_of: Callable[[KubeObject], KubeObject | None]) -> Replicas:
    if dcd is None:
        return Replicas(name, 0, 0, 0)
    available, ready = ready_replicas(workload_of(dcd))
    return Replicas(
        name,
        dcd["spec"].get("replicas", 1),
        available,
        ready,
        dcd["metadata"].get("creationTimestamp", ""),
        replicas_left(workload_of(dcd)),
    )


def _marks(obj: KubeObject) -> Mapping[str, str]:
    marks: Mapping[str, str] = obj["metadata"].get("labels", {})
    return marks


def _template_annotations(child: KubeObject) -> Mapping[str, str]:
    template = child["spec"].get("podTemplate") or {}
    marks: Mapping[str, str] = template.get("metadata", {}).get("annotations", {})
    return marks
