"""Restarts of a graph's pods, asked for by `spec.restart`: which components get the restart's id into their pod templates now.

A pod template that carries another id is another template, so that its orchestrator replaces the pods, within its own limits.
Everything that a restart knows stands in the objects and in the graph's status. One of the following can be the case:

1. Nothing is asked for: ids that are there stay, since taking one out would replace pods, too.
2. The restart has ended already: the same.
3. The workers are being exchanged anyway: the restart is superseded, and not made up for later.
4. Components are on their way: nothing more begins, one after the other; all begin at once where the strategy is Parallel.
5. All that began serve: the next in the order begins, or the restart is complete.

Pods that are still to be made need no restart: their template has the id from the start. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import RESTART_AT
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, LEADER_WORKER_SETS, POD_CLIQUE_SETS
from dynamo_shared.api.v1beta1 import RestartPhase, RestartStrategyType

from dynamo_pod_builder.status.workload import readiness

_ENDED = frozenset({RestartPhase.COMPLETED.value, RestartPhase.SUPERSEDED.value, RestartPhase.FAILED.value})


@dataclass(frozen=True, slots=True)
class Part:
    """A component as a restart sees it: whether there is anything of it, the id that it carries ("" for none), and whether
    all of its pods are of the template that carries it, and serve.
    """

    exists: bool
    mark: str = ""
    serves: bool = False


@dataclass(frozen=True, slots=True)
class Restart:
    """What one reconcile of a graph does about its restart."""

    #: Ids that pod templates carry, by component.
    marks: Mapping[str, str] = field(default_factory=dict)
    #: `status.restart`; None for none.
    status: dict[str, Any] | None = None
    #: The phase that begins with this reconcile, "" where none does.
    entered: str = ""

    @property
    def is_under_way(self) -> bool:
        """Whether components are being restarted."""
        return self.status is not None and self.status.get("phase") == RestartPhase.RESTARTING


def decide(
    wish: Mapping[str, Any] | None, previous: dict[str, Any] | None, parts: Mapping[str, Part], *, rolling: bool
) -> Restart:
    """The next step of the restart `wish` (`spec.restart`); `previous` is `status.restart`, `parts` are by component.

    `rolling`: whether a rolling update of workers is under way.
    """
    marks = {name: part.mark for name, part in parts.items() if part.mark}
    if not wish:
        return Restart(marks, previous if _ended(previous) else None)
    id_ = wish["id"]
    marks |= {name: id_ for name, part in parts.items() if not part.exists}
    if previous is not None and previous.get("observedID") != id_:
        previous = None
    if _ended(previous):
        return Restart(marks, previous)
    if rolling:
        return _step(marks, previous, id_, RestartPhase.SUPERSEDED, ())
    strategy = wish.get("strategy") or {}
    order = _order(strategy.get("order") or (), parts)
    waiting = [name for name in order if marks.get(name) != id_]
    moving = [name for name in order if marks.get(name) == id_ and not parts[name].serves]
    one_by_one = strategy.get("type") != RestartStrategyType.PARALLEL
    beginning = ([] if moving else waiting[:1]) if one_by_one else waiting
    marks |= dict.fromkeys(beginning, id_)
    phase = RestartPhase.RESTARTING if moving or beginning else RestartPhase.COMPLETED
    return _step(marks, previous, id_, phase, (*moving, *beginning))


def parts_of(
    wanted: Sequence[KubeObject],
    present: Mapping[str, KubeObject],
    workload_of: Callable[[KubeObject], KubeObject | None],
    pods_of: Callable[[KubeObject], Sequence[KubeObject]],
) -> dict[str, Part]:
    """Components that run as component deployments; `present` are these by name.

    `workload_of` gives what runs the pods of one, and `pods_of` the pods of that.
    """
    parts: dict[str, Part] = {}
    for child in wanted:
        if child["kind"] != DYNAMO_COMPONENT_DEPLOYMENTS.kind:
            continue
        there = present.get(child["metadata"]["name"])
        component = child["metadata"]["labels"][labels.COMPONENT]
        parts[component] = Part(False) if there is None else _part(there, workload_of(there), pods_of)
    return parts


def parts_of_set(there: KubeObject | None, workloads: Mapping[str, KubeObject | None]) -> dict[str, Part]:
    """Components that Grove runs; `there` is the PodCliqueSet as it is, `workloads` are what Grove made, by component."""
    marks: dict[str, str] = {}
    if there is not None:
        for each in there.get("spec", {}).get("template", {}).get("cliques", ()):
            marks[_component_of(each)] = (each.get("annotations") or {}).get(RESTART_AT, "")
    seen = there is not None and _is_realized(there)
    return {
        name: Part(True, marks[name], seen and readiness(workload).ready) if name in marks else Part(False)
        for name, workload in workloads.items()
    }


def marked(wanted: Sequence[KubeObject], marks: Mapping[str, str]) -> list[KubeObject]:
    """Children of a graph with the ids in the pod templates of their components; the hash of workers is not over these."""
    return [_marked(child, marks) for child in wanted]


def _marked(child: KubeObject, marks: Mapping[str, str]) -> KubeObject:
    if child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind:
        mark = marks.get(child["metadata"]["labels"][labels.COMPONENT])
        if mark is None:
            return child
        spec = child["spec"]
        template = spec.get("podTemplate") or {}
        metadata = _with(template.get("metadata") or {}, mark)
        return {**child, "spec": {**spec, "podTemplate": {**template, "metadata": metadata}}}
    if child["kind"] == POD_CLIQUE_SETS.kind:
        template = child["spec"]["template"]
        cliques = [
            each if (mark := marks.get(_component_of(each))) is None else _with(each, mark)
            for each in template["cliques"]
        ]
        return {**child, "spec": {**child["spec"], "template": {**template, "cliques": cliques}}}
    return child


def _with(holder: KubeObject, mark: str) -> KubeObject:
    return {**holder, "annotations": {**(holder.get("annotations") or {}), RESTART_AT: mark}}


def _step(
    marks: Mapping[str, str], previous: Mapping[str, Any] | None, id_: str, phase: str, moving: Sequence[str]
) -> Restart:
    status: dict[str, Any] = {"observedID": id_, "phase": str(phase)}
    if moving:
        status["inProgress"] = sorted(moving)
    entered = "" if previous is not None and previous.get("phase") == phase else str(phase)
    return Restart(marks, status, entered)


def _order(given: Sequence[str], parts: Mapping[str, Part]) -> list[str]:
    """Components in the order that is asked for; what it leaves out follows by name, what it names in vain is left out."""
    first = [name for name in dict.fromkeys(given) if name in parts]
    return [*first, *sorted(parts.keys() - set(first))]


def _ended(status: Mapping[str, Any] | None) -> bool:
    return status is not None and status.get("phase") in _ENDED


def _part(
    component: KubeObject, workload: KubeObject | None, pods_of: Callable[[KubeObject], Sequence[KubeObject]]
) -> Part:
    mark = _mark_in(component["spec"].get("podTemplate"))
    if workload is None:
        return Part(True, mark)
    spec = workload.get("spec") or {}
    if workload.get("kind") != LEADER_WORKER_SETS.kind:
        return Part(True, mark, _mark_in(spec.get("template")) == mark and readiness(workload).ready)
    # Its status does not say which generation of its spec it is of: right after a change all seems well. Its pods tell.
    pods = pods_of(workload)
    renewed = all(_mark_in(pod) == mark for pod in pods) and (bool(pods) or spec.get("replicas") == 0)
    template = (spec.get("leaderWorkerTemplate") or {}).get("workerTemplate")
    return Part(True, mark, _mark_in(template) == mark and renewed and readiness(workload).ready)


def _mark_in(template: KubeObject | None) -> str:
    metadata = (template or {}).get("metadata") or {}
    return str((metadata.get("annotations") or {}).get(RESTART_AT, ""))


def _component_of(clique: KubeObject) -> str:
    return str((clique.get("labels") or {}).get(labels.COMPONENT, ""))


def _is_realized(pod_clique_set: KubeObject) -> bool:
    """Whether Grove has seen the set as it is, and has no update of it under way."""
    status = pod_clique_set.get("status") or {}
    if (status.get("observedGeneration") or 0) < pod_clique_set["metadata"].get("generation", 1):
        return False
    updates = (status.get("updateProgress"), status.get("rollingUpdateProgress"))
    return all(update is None or update.get("updateEndedAt") for update in updates)
