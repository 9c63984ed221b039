"""The workloads of a graph's components, on Deployments or Grove, and what prevents their pods from serving. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, POD_CLIQUE_SETS

from dynamo_pod_builder.reconcilers.graph import grove
from dynamo_pod_builder.reconcilers.graph.observed import Observed, place_of
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.status.component import failure_of, is_observed
from dynamo_pod_builder.status.graph import Generation
from dynamo_pod_builder.status.pods import Rank, Trouble, troubles
from dynamo_pod_builder.status.workload import readiness, refusal_of


def all_parts(plan: Plan, observed: Observed) -> dict[str, list[Generation]]:
    """All workloads of a graph's components, by component: the desired ones, and those of outgoing orchestrators."""
    parts = desired_parts(plan, observed)
    for other in plan.outgoing:
        if other["kind"] == POD_CLIQUE_SETS.kind and place_of(other) in observed.children:
            for name, generation in _of_set(other, observed).items():
                parts.setdefault(name, []).append(replace(generation, current=False))
    if plan.pod_clique_set is not None:
        for name, generations in _of_components(plan, observed).items():
            parts.setdefault(name, []).extend(generations)
    return parts


def desired_parts(plan: Plan, observed: Observed) -> dict[str, list[Generation]]:
    """The workloads of the desired orchestrator: of component deployments with all their generations, or of the set."""
    if plan.pod_clique_set is None:
        return _of_components(plan, observed)
    return {name: [generation] for name, generation in _of_set(plan.pod_clique_set, observed).items()}


def replicas_by_component(children: Iterable[KubeObject]) -> dict[str, int]:
    """Replicas of rendered components, from component deployments or from a set."""
    replicas: dict[str, int] = {}
    for child in children:
        if child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind:
            replicas[objects.labels(child)[labels.COMPONENT]] = objects.replicas(child)
        elif child["kind"] == POD_CLIQUE_SETS.kind:
            replicas |= {each.component: each.replicas for each in grove.workloads(child)}
    return replicas


def all_serve(parts: Mapping[str, Sequence[Generation]]) -> bool:
    """Whether everything that is desired serves, so that outgoing workloads can be deleted. `parts` are by component."""
    current = [part for generations in parts.values() for part in generations if part.current]
    return all(part.failure is None and part.leaving is None and readiness(part.workload).ready for part in current)


def _of_set(pod_clique_set: KubeObject, observed: Observed) -> dict[str, Generation]:
    stored = observed.children.get(place_of(pod_clique_set), pod_clique_set)
    is_new = "observedGeneration" not in stored.get("status", {})
    is_current = is_new or grove.is_observed(stored)
    workloads = list(grove.workloads(pod_clique_set))
    # In all other cases Grove reports only for the whole set, and only at the end, that it has acted on it.
    by_clique = grove.is_updating(stored) or not all(each.replicas for each in workloads)
    generations = {}
    for each in workloads:
        workload = observed.cliques.get(each.place)
        generations[each.component] = Generation(
            each.name,
            workload,
            troubles=[
                *_refused(observed.members.get(each.place, ())),
                *troubles(observed.pods_of(workload), observed.now),
            ],
            observed=grove.is_scaled(each, workload)
            and (is_current or (by_clique and grove.is_updated(stored, workload))),
            leaving=_leaving(stored),
        )
    return generations


def _leaving(obj: KubeObject | None) -> KubeObject | None:
    """The object, if it is being deleted and has finalizers."""
    return obj if obj is not None and objects.is_deleting(obj) and obj["metadata"].get("finalizers") else None


def _refused(cliques: Iterable[KubeObject]) -> Iterator[Trouble]:
    """Why pods of a scaling group cannot be created, which the group itself does not report."""
    for each in cliques:
        if (refusal := refusal_of(each)) is not None:
            yield Trouble(Rank.REFUSED, refusal[0], f"of {objects.name(each)}", refusal[1])


def _of_components(plan: Plan, observed: Observed) -> dict[str, list[Generation]]:
    current = {
        objects.name(child): objects.labels(child)[labels.COMPONENT]
        for child in plan.desired
        if child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind
    }
    parts: dict[str, list[Generation]] = {name: [] for name in current.values()}
    existing = observed.components
    for name in sorted(current.keys() | existing.keys()):
        dcd = existing.get(name)
        component = current.get(name) or objects.labels(dcd or {}).get(labels.COMPONENT)
        if component is None:
            continue
        workload = observed.workloads.get(name)
        # If nothing could be rendered, only existing workloads can be reported.
        is_current = name in current or plan.children is None
        # Troubles of the other generations are not reported: they are to be deleted.
        explained = is_current and not readiness(workload).ready
        generation = Generation(
            name,
            workload,
            current=is_current,
            failure=failure_of(dcd) if dcd is not None else None,
            troubles=troubles(observed.pods_of(workload), observed.now) if explained else (),
            observed=dcd is not None and is_observed(dcd),
            leaving=_leaving(dcd) or _leaving(workload),
        )
        parts.setdefault(component, []).append(generation)
    return parts
