"""Step 3: workers of several generations take turns: the replicas to write for each generation in this reconcile.

One of the following cases holds for a worker component:
1. It has no component deployment, or only the desired generation: it gets the replicas of the spec.
2. Other generations exist: both move one step (`rollout.step`), depending on how many new pods serve (`serving`); the
   others are deleted when the desired generation serves.
3. The same, and the component's strategy is Recreate: the others go first (`rollout.replace_all`).
4. The same, and a desired worker waits for its checkpoint: the others serve until the checkpoint is ready, and so do
   the other workers of their generation, with the replicas that the graph desires meanwhile (`rollout.scaled`).
5. It is no longer desired: it stays until the desired workers serve, unless they need its room.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from dynamo_shared.api import objects
from dynamo_shared.api.conditions import timestamp
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import has_ended
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import DEPLOYMENT_MAX_UNAVAILABLE, DEPLOYMENT_STRATEGY
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS
from dynamo_shared.api.v1beta1.enums import UNFINISHED_UPDATE

from dynamo_pod_builder.reconcilers.graph.observed import Observed
from dynamo_pod_builder.reconcilers.graph.plan import Plan, Rollout
from dynamo_pod_builder.reconcilers.graph.serving import NO_ROOM, ServingPods, generation_of, serving
from dynamo_pod_builder.reconcilers.requeue import earliest
from dynamo_pod_builder.render.workloads.deployment import RECREATE
from dynamo_pod_builder.rollout import Replicas, RolloutStep, margins, replace_all, scaled, step
from dynamo_pod_builder.status.pods import NAMED, recheck_after, summary, troubles
from dynamo_pod_builder.status.workload import QUOTA_EXCEEDED, ready_replicas, replicas_left, served_groups

IN_PROGRESS, COMPLETED = "InProgress", "Completed"


def roll(plan: Plan, observed: Observed) -> Plan:
    """The plan with the next replicas of each generation of workers, and the progress of the rolling update."""
    previous: dict[str, Any] | None = observed.status.get("rollingUpdate")
    active = _active(previous)
    leftovers = _leftovers(plan.desired, observed)
    workers = _workers(plan.desired)
    new = serving(workers, leftovers, observed)
    children: list[KubeObject] = []
    drain: list[tuple[KubeObject, int]] = []
    moving: list[str] = []
    stands: list[str] = []
    # While one of them waits for a checkpoint, no worker of its generation can take over.
    waits = not workers.keys().isdisjoint(plan.starts.waiting)
    # Leftovers that serve are deleted at the end, and may belong to components that have no new generation.
    is_needed = any(objects.replicas(dcd) for part in leftovers.values() for dcd in part)
    finished = True
    for child in plan.desired:
        component = objects.labels(child).get(labels.COMPONENT, "")
        old = leftovers.get(component, ())
        # An update ends when all workers serve, including those that have no old generation, or no longer have one.
        takes_part = old or (child is workers.get(component) and (leftovers or active))
        if child["kind"] != DYNAMO_COMPONENT_DEPLOYMENTS.kind or not takes_part:
            children.append(child)
            continue
        moving.append(component)
        next_ = _held(child, old, new, plan, observed) if waits and old else _next(child, old, new, observed)
        desired = objects.replicas(child)
        serves = not is_needed or new.pods.get(component, desired) >= desired
        finished = finished and next_.done and serves
        children.append({**child, "spec": {**child["spec"], "replicas": next_.new}})
        targets = [(dcd, next_.old[objects.name(dcd)]) for dcd in old]
        moved = [(dcd, target) for dcd, target in targets if objects.replicas(dcd) != target]
        drain += moved
        if component in new.crowded and not moved and any(target for _, target in targets):
            stands.append(component)
    plan = plan.with_children(children)
    if finished:
        components: Sequence[str] = sorted(workers) if active else ()
        status = _ended(previous, components, observed.now)
        rollout = Rollout(components=components, status=status, completed=bool(components))
    else:
        rollout = _under_way(workers, leftovers, moving, new, observed)
        for_room = (_waits_for_room(component, new.crowded[component]) for component in sorted(stands))
        rollout = replace(rollout, drain=drain, waits=(*rollout.waits, *for_room))
    return replace(plan, rollout=rollout)


def _under_way(
    workers: Mapping[str, KubeObject],
    leftovers: Mapping[str, Sequence[KubeObject]],
    moving: Sequence[str],
    new: ServingPods,
    observed: Observed,
) -> Rollout:
    """An unfinished update, without the replicas of leftovers: which leftovers stay, and what it waits for."""
    previous: dict[str, Any] = observed.status.get("rollingUpdate") or {}
    active, now = _active(previous), observed.now
    recreated = sorted(component for component, child in workers.items() if _is_recreated(child))
    makes_room = new.no_room or new.makes_way or bool(recreated)
    kept = [dcd for component, part in leftovers.items() for dcd in part if component in moving or not makes_room]
    ending = {component: _ending(leftovers.get(component, ()), observed) for component in recreated}
    lost = {component: lost for component, pods in ending.items() if (lost := troubles(pods, now))}
    return Rollout(
        kept=list(map(objects.uid, kept)),
        makes_way=new.makes_way,
        components=moving,
        status={"phase": IN_PROGRESS, "startTime": _begun(previous, now) if active else timestamp(now)},
        started=not active,
        again=earliest(new.again, *(recheck_after(pods, now) for pods in ending.values())),
        waits=(
            *(_waits_to_register(component, pods) for component, pods in sorted(new.unregistered.items())),
            *(f"{component}: {summary(pods)}" for component, pods in lost.items()),
        ),
    )


def _waits_to_register(component: str, pods: Sequence[str]) -> str:
    named = ", ".join(pods[:NAMED]) + (f" and {len(pods) - NAMED} more" if len(pods) > NAMED else "")
    return f"{component}: {named} ready, but not registered with Dynamo: no DynamoWorkerMetadata of that name"


def _waits_for_room(component: str, crowded: str) -> str:
    if crowded == QUOTA_EXCEEDED:
        problem, remedy = "its namespace's quota leaves no room for new pods", "raise the quota"
    else:
        minutes = round(NO_ROOM.total_seconds() / 60)
        problem, remedy = f"no node has had room for new pods for {minutes} minutes", "free resources, or add nodes"
    return (
        f"{component}: {problem}, and the roll-out may not delete another old pod before a new pod serves: {remedy}; "
        f"or, to delete old pods first, set a higher {DEPLOYMENT_MAX_UNAVAILABLE} or {DEPLOYMENT_STRATEGY}: {RECREATE} in "
        "the annotations of its pod template"
    )


def _ending(old: Sequence[KubeObject], observed: Observed) -> list[KubeObject]:
    """Pods that are being deleted, of these component deployments: their replacements wait for them."""
    pods = (pod for dcd in old for pod in observed.pods_of(observed.workloads.get(objects.name(dcd))))
    return [pod for pod in pods if objects.is_deleting(pod)]


def _leftovers(desired: Sequence[KubeObject], observed: Observed) -> dict[str, list[KubeObject]]:
    """Component deployments of workers that are no longer desired, by component."""
    names = {objects.name(child) for child in desired}
    workers = _workers(desired)
    leftovers: dict[str, list[KubeObject]] = {}
    for name, dcd in observed.components.items():
        component = objects.labels(dcd).get(labels.COMPONENT)
        # A leftover of the last update is already on its way out: a new update does not move it.
        is_leaving = objects.is_deleting(dcd) and (component not in workers or objects.replicas(dcd) == 0)
        if is_leaving and not _active(observed.status.get("rollingUpdate")):
            continue
        # Workers that were created before hashes existed have none.
        if name not in names and (labels.WORKER_HASH in objects.labels(dcd) or component in workers):
            leftovers.setdefault(component or "", []).append(dcd)
    return leftovers


def _workers(desired: Sequence[KubeObject]) -> dict[str, KubeObject]:
    """Workers by component. They share one hash, so all of them take part in a rolling update."""
    of_workers = [(objects.labels(child), child) for child in desired if labels.WORKER_HASH in objects.labels(child)]
    return {each[labels.COMPONENT]: child for each, child in of_workers if labels.COMPONENT in each}


def _next(child: KubeObject, old: Sequence[KubeObject], new: ServingPods, observed: Observed) -> RolloutStep:
    desired = objects.replicas(child)
    name = objects.name(child)
    current = _replicas(name, observed.components.get(name), observed)
    before = [_replicas(objects.name(dcd), dcd, observed) for dcd in old]
    if _is_recreated(child):
        return replace_all(desired, current, before)
    # Pods of a generation that does not serve go first, even if some of its components have all their pods.
    shares = [new.old.get(generation_of(dcd)) for dcd in old]
    before = [
        replace(part, available=0, behind=0) if share is None else replace(part, share=share)
        for part, share in zip(before, shares, strict=True)
    ]
    component = objects.labels(child)[labels.COMPONENT]
    current = replace(current, available=new.pods.get(component, current.available))
    next_ = step(desired, current, before, *margins(component, desired, _template_annotations(child)))
    if new.makes_way:
        return replace(next_, old=dict.fromkeys(next_.old, 0))
    return replace(next_, old={part.name: part.replicas for part in before}) if new.holds else next_


def _held(
    child: KubeObject, old: Sequence[KubeObject], new: ServingPods, plan: Plan, observed: Observed
) -> RolloutStep:
    """No further new pod; in addition to the serving new pods, as many old ones as the graph desires meanwhile."""
    component, name = objects.labels(child)[labels.COMPONENT], objects.name(child)
    current = _replicas(name, observed.components.get(name), observed)
    target = min(current.replicas, objects.replicas(child))
    serving_now = min(target, new.pods.get(component, current.available))
    before = [_replicas(objects.name(dcd), dcd, observed) for dcd in old]
    return RolloutStep(target, scaled(before, plan.replicas[component] - serving_now), done=False)


def _is_recreated(child: KubeObject) -> bool:
    return _template_annotations(child).get(DEPLOYMENT_STRATEGY) == RECREATE


def _template_annotations(child: KubeObject) -> Mapping[str, str]:
    return objects.annotations(child["spec"].get("podTemplate") or {})


def _active(previous: Mapping[str, Any] | None) -> bool:
    return previous is not None and previous.get("phase") in UNFINISHED_UPDATE


def _begun(previous: Mapping[str, Any], now: datetime) -> str:
    """When an update began; now if its status, which other clients may write, does not say it."""
    return str(previous.get("startTime") or timestamp(now))


def _ended(previous: dict[str, Any] | None, components: Sequence[str], now: datetime) -> dict[str, Any] | None:
    if previous is None or not _active(previous):
        return previous
    return {
        "phase": COMPLETED,
        "startTime": _begun(previous, now),
        "endTime": timestamp(now),
        "updatedComponents": sorted(components),
    }


def _replicas(name: str, dcd: KubeObject | None, observed: Observed) -> Replicas:
    if dcd is None:
        return Replicas(name, 0, 0, 0)
    workload = observed.workloads.get(name)
    available, ready = ready_replicas(observed.staying(name))
    pods = observed.pods_of(workload)
    # A Deployment does not count pods that are being deleted, but they keep their GPUs until they are gone.
    left = max(replicas_left(workload), sum(not has_ended(pod) for pod in pods))
    behind = max(0, served_groups(workload, pods) - available)
    return Replicas(name, objects.replicas(dcd), available, ready, objects.created_at(dcd), left, behind=behind)
