"""Step 4: restarts of pods, requested by `spec.restart`: which pod templates get the restart's id now.

A pod template with another id is another template, so its orchestrator replaces the pods, within its own limits. All
state of a restart is in the objects and in the graph's status. One of the following cases holds:

1. No restart is requested: existing ids stay, because removing one would also replace pods.
2. The restart has already ended: the same.
3. A rolling update of the workers is under way: the restart is superseded, and not made up for later.
4. Components are still restarting: if they restart one by one, no other begins; with the Parallel strategy all begin at
   once.
5. The same, and an earlier restart had not finished with some: these begin first, because a new id stops nothing that
   serves.
6. All that began serve: the next in the order begins, or the restart is complete.

Pods that do not exist yet need no restart: their template has the id from the start.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import RESTART_AT
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, LEADER_WORKER_SETS, POD_CLIQUE_SETS
from dynamo_shared.api.role_templates import with_templates
from dynamo_shared.api.v1beta1.enums import RestartPhase, RestartStrategyType

from dynamo_pod_builder.reconcilers.graph import grove
from dynamo_pod_builder.reconcilers.graph.observed import Observed, place_of
from dynamo_pod_builder.reconcilers.graph.plan import Plan, RestartPlan
from dynamo_pod_builder.reconcilers.graph.steps.rollout import IN_PROGRESS
from dynamo_pod_builder.render.pod.template import with_annotations
from dynamo_pod_builder.status.workload import readiness

_ENDED = frozenset({RestartPhase.COMPLETED.value, RestartPhase.SUPERSEDED.value, RestartPhase.FAILED.value})


@dataclass(frozen=True, slots=True)
class Part:
    """A component during a restart: whether it exists, its id ("" without one), and whether all of its pods come from
    the template with that id, and serve.
    """

    exists: bool
    id: str = ""
    serves: bool = False


def restart(plan: Plan, observed: Observed) -> Plan:
    """The plan with the restart ids in the pod templates of components, and the progress of the restart."""
    rolling = (plan.rollout.status or {}).get("phase") == IN_PROGRESS
    decided = decide(
        observed.graph["spec"].get("restart"), observed.status.get("restart"), parts_of(plan, observed), rolling=rolling
    )
    return replace(plan.with_children([_with_id(child, decided.ids) for child in plan.desired]), restart=decided)


def parts_of(plan: Plan, observed: Observed) -> dict[str, Part]:
    """The observed components of the plan."""
    if plan.pod_clique_set is not None:
        return _of_set(plan.pod_clique_set, observed)
    existing = observed.components
    return {
        objects.labels(child)[labels.COMPONENT]: _of_component(existing.get(objects.name(child)), observed)
        for child in plan.desired
        if child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind
    }


def decide(
    desired: Mapping[str, Any] | None, previous: dict[str, Any] | None, parts: Mapping[str, Part], *, rolling: bool
) -> RestartPlan:
    """The next step of the restart `desired` (`spec.restart`); `previous`: `status.restart`; `parts`: by component.

    `rolling`: whether a rolling update of workers is under way.
    """
    ids = {name: part.id for name, part in parts.items() if part.id}
    if not desired:
        return RestartPlan(ids, previous if _ended(previous) else None)
    id_ = desired["id"]
    ids |= {name: id_ for name, part in parts.items() if not part.exists}
    before, previous = previous, previous if previous is not None and previous.get("observedID") == id_ else None
    if _ended(previous):
        return RestartPlan(ids, previous)
    if rolling:
        return _step(ids, previous, id_, RestartPhase.SUPERSEDED, ())
    strategy = desired.get("strategy") or {}
    order = _order(strategy.get("order") or (), parts)
    waiting = [name for name in order if ids.get(name) != id_]
    moving = [name for name in order if ids.get(name) == id_ and not parts[name].serves]
    unfinished = _unfinished(waiting, before, parts)
    one_by_one = strategy.get("type") != RestartStrategyType.PARALLEL
    beginning = ([] if moving else (unfinished or waiting)[:1]) if one_by_one else waiting
    ids |= dict.fromkeys(beginning, id_)
    phase = RestartPhase.RESTARTING if moving or beginning else RestartPhase.COMPLETED
    return _step(ids, previous, id_, phase, dict.fromkeys((*moving, *beginning, *unfinished)))


def _unfinished(waiting: Sequence[str], before: Mapping[str, Any] | None, parts: Mapping[str, Part]) -> list[str]:
    """Of the components that wait for their id, those that are still restarting because of an earlier id.

    `before` is the status of this or the previous restart, and lists them, unless it has ended. If it is None, as after
    a restart that was removed, every component that has an id and does not serve may be one.
    """
    may_be: Collection[str] = parts.keys() if before is None else before.get("inProgress") or ()
    return [name for name in waiting if name in may_be and parts[name].id and not parts[name].serves]


def _step(
    ids: Mapping[str, str], previous: Mapping[str, Any] | None, id_: str, phase: str, moving: Iterable[str]
) -> RestartPlan:
    status: dict[str, Any] = {"observedID": id_, "phase": str(phase)}
    if names := sorted(moving):
        status["inProgress"] = names
    entered = "" if previous is not None and previous.get("phase") == phase else str(phase)
    return RestartPlan(ids, status, entered)


def _order(given: Sequence[str], parts: Mapping[str, Part]) -> list[str]:
    """Components in the requested order, then the others by name. Names that are not components are left out."""
    first = [name for name in dict.fromkeys(given) if name in parts]
    return [*first, *sorted(parts.keys() - set(first))]


def _ended(status: Mapping[str, Any] | None) -> bool:
    return status is not None and status.get("phase") in _ENDED


def _with_id(child: KubeObject, ids: Mapping[str, str]) -> KubeObject:
    """A child of the graph with the ids in the pod templates of its components; the hash of workers does not cover ids."""
    if child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind:
        id_ = ids.get(objects.labels(child)[labels.COMPONENT])
        if id_ is None:
            return child
        spec = {"podTemplate": {}, **child["spec"]}
        return {**child, "spec": with_templates(spec, lambda each: with_annotations(each, {RESTART_AT: id_}))}
    if child["kind"] == POD_CLIQUE_SETS.kind:
        template = child["spec"]["template"]
        cliques = [
            each
            if (id_ := ids.get(grove.component_of(each))) is None
            else {**each, "annotations": {**(each.get("annotations") or {}), RESTART_AT: id_}}
            for each in template["cliques"]
        ]
        return {**child, "spec": {**child["spec"], "template": {**template, "cliques": cliques}}}
    return child


def _of_component(component: KubeObject | None, observed: Observed) -> Part:
    if component is None:
        return Part(False)
    id_ = _id_in(component["spec"].get("podTemplate"))
    workload = observed.staying(objects.name(component))
    if workload is None:
        return Part(True, id_)
    spec = workload.get("spec") or {}
    if workload.get("kind") != LEADER_WORKER_SETS.kind:
        return Part(True, id_, _id_in(spec.get("template")) == id_ and readiness(workload).ready)
    # Its status does not say to which generation of its spec it belongs: right after a change everything appears ready.
    template = (spec.get("leaderWorkerTemplate") or {}).get("workerTemplate")
    renewed = _id_in(template) == id_ and _pods_have(id_, workload, observed)
    return Part(True, id_, renewed and readiness(workload).ready)


def _of_set(pod_clique_set: KubeObject, observed: Observed) -> dict[str, Part]:
    existing = observed.children.get(place_of(pod_clique_set))
    if existing is None:
        return {each.component: Part(False) for each in grove.workloads(pod_clique_set)}
    ids = {grove.component_of(each): _id_in({"metadata": each}) for each in grove.cliques_of([existing])}
    realized = grove.is_observed(existing) and not grove.is_updating(existing)
    parts: dict[str, Part] = {}
    for each in grove.workloads(pod_clique_set):
        workload, id_ = observed.cliques.get(each.place), ids.get(each.component)
        if id_ is None or workload is None:
            parts[each.component] = Part(id_ is not None, id_ or "")
            continue
        # Until Grove observes the new id of the set, everything appears ready.
        renewed = realized or (grove.is_updated(existing, workload) and _pods_have(id_, workload, observed))
        parts[each.component] = Part(True, id_, renewed and readiness(workload).ready)
    return parts


def _pods_have(id_: str, workload: KubeObject, observed: Observed) -> bool:
    """Whether all pods of a workload have the id. Without pods: whether none are desired."""
    pods = observed.pods_of(workload)
    return all(_id_in(pod) == id_ for pod in pods) and (bool(pods) or (workload.get("spec") or {}).get("replicas") == 0)


def _id_in(template: KubeObject | None) -> str:
    return objects.annotations(template or {}).get(RESTART_AT, "")
