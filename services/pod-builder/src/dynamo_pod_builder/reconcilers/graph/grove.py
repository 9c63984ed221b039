"""What Grove creates from a PodCliqueSet: one clique, or one scaling group, for each component. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from dynamo_shared.api import objects, quantity
from dynamo_shared.api.defaults import DEFAULT_REPLICAS
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import POD_CLIQUE_SCALING_GROUPS, POD_CLIQUE_SETS, POD_CLIQUES, Resource
from dynamo_shared.kube import coverage

from dynamo_pod_builder.reconcilers.graph.observed import Place
from dynamo_pod_builder.render.context import WORKERS
from dynamo_pod_builder.render.typed import NO_DIVISOR

#: Fields that hold quantities.
_AMOUNTS = frozenset({"divisor", "limits", "overhead", "requests", "sizeLimit"})
#: Fields of a container without which it starts another engine.
_STARTED_WITH = ("command", "args", "envFrom")


class GroveWorkload(NamedTuple):
    """The Grove object that runs one component."""

    component: str
    resource: Resource
    name: str
    replicas: int

    @property
    def place(self) -> Place:
        """Its key in an `Observed`."""
        return self.resource.id, self.name


def workloads(pod_clique_set: KubeObject) -> Iterator[GroveWorkload]:
    """Each standalone clique and each scaling group, except those without a component, which other programs make."""
    template, prefix = pod_clique_set["spec"]["template"], f"{objects.name(pod_clique_set)}-0"
    cliques = {each["name"]: each for each in template["cliques"]}
    grouped: set[str] = set()
    for group in template.get("podCliqueScalingGroups", ()):
        grouped.update(group["cliqueNames"])
        if component := component_of(cliques[group["cliqueNames"][0]]):
            name = f"{prefix}-{group['name']}"
            yield GroveWorkload(component, POD_CLIQUE_SCALING_GROUPS, name, group.get("replicas", DEFAULT_REPLICAS))
    for name, each in cliques.items():
        if name not in grouped and (component := component_of(each)):
            yield GroveWorkload(component, POD_CLIQUES, f"{prefix}-{name}", objects.replicas(each))


def with_amounts_of(children: Iterable[KubeObject], sets: Iterable[KubeObject]) -> list[KubeObject]:
    """The children of a graph. Quantities in its set are written as in the existing set if they are equal.

    For Grove, `500m` and `0.5` differ, because its hash (`ComputeHash`) differs, and it would replace the pods.
    """
    existing = {objects.name(each): each for each in sets}
    return [
        {**each, "spec": _as_observed(each["spec"], existing[objects.name(each)].get("spec"))}
        if each["kind"] == POD_CLIQUE_SETS.kind and objects.name(each) in existing
        else each
        for each in children
    ]


def _as_observed(desired: Any, existing: Any, *, amounts: bool = False) -> Any:
    if isinstance(desired, dict) and isinstance(existing, dict):
        return {
            name: _as_observed(value, existing.get(name), amounts=amounts or name in _AMOUNTS)
            for name, value in desired.items()
            if name in existing or (name, value) != ("divisor", NO_DIVISOR)
        }
    if isinstance(desired, list) and isinstance(existing, list):
        known = {each["name"]: each for each in existing if isinstance(each, dict) and "name" in each}
        return [_as_observed(each, known.get(each.get("name"))) if isinstance(each, dict) else each for each in desired]
    is_same = amounts and existing is not None and quantity.amount_of(desired) == quantity.amount_of(existing)
    return existing if is_same else desired


def cliques_of(sets: Iterable[KubeObject]) -> list[KubeObject]:
    """The cliques of stored sets, unchanged."""
    return [each for item in sets for each in item.get("spec", {}).get("template", {}).get("cliques", ())]


def component_of(clique: KubeObject) -> str:
    """The component of a clique in a set; "" if the clique lacks the label."""
    return str((clique.get("labels") or {}).get(labels.COMPONENT, ""))


def accepted(pod_clique_set: KubeObject) -> KubeObject:
    """The set as it is written. Grove accepts neither 0 replicas nor fewer than the gang minimum: such a clique or
    group is scaled to 0 after it exists.
    """
    template = pod_clique_set["spec"]["template"]
    changed = {**template, "cliques": [{**each, "spec": _not_empty(each["spec"])} for each in template["cliques"]]}
    if groups := template.get("podCliqueScalingGroups"):
        changed["podCliqueScalingGroups"] = [_not_empty(each) for each in groups]
    return {**pod_clique_set, "spec": {**pod_clique_set["spec"], "template": changed}}


def _not_empty(part: KubeObject) -> KubeObject:
    return part if part["replicas"] else {**part, "replicas": part.get("minAvailable", 1)}


def is_observed(pod_clique_set: KubeObject) -> bool:
    """Whether Grove has acted on the set's present spec. It reports that only after it has done everything: never while
    a component has 0 replicas (0.1.0-alpha.8, `reconcileSpec` and `isPCLQUpdateComplete`).
    """
    observed = (pod_clique_set.get("status") or {}).get("observedGeneration") or 0
    return bool(observed >= objects.generation(pod_clique_set))


def is_updating(pod_clique_set: KubeObject) -> bool:
    """Whether an update of the set is under way."""
    status = pod_clique_set.get("status") or {}
    updates = (status.get("updateProgress"), status.get("rollingUpdateProgress"))
    return any(update is not None and not update.get("updateEndedAt") for update in updates)


def is_updated(pod_clique_set: KubeObject, workload: KubeObject | None) -> bool:
    """Whether a clique or a group has the generation that Grove reports for its set, which may be an earlier one."""
    known = (pod_clique_set.get("status") or {}).get("currentGenerationHash")
    reached = ((workload or {}).get("status") or {}).get("currentPodCliqueSetGenerationHash")
    return known is not None and reached == known


def generation(sets: Sequence[KubeObject]) -> str:
    """Hash of the existing workers; "" if there are no workers, or they have none, as before their first change."""
    hashes = ((each.get("labels") or {}).get(labels.WORKER_HASH) for item in sets for each in _workers(item).values())
    return next(filter(None, hashes), "")


def renews_workers(pod_clique_set: KubeObject, existing: KubeObject) -> bool:
    """Whether the workers of a desired set differ from those of the existing set, if Grove has already made pods of it."""
    if (existing.get("status") or {}).get("currentGenerationHash") is None:
        return False
    desired, present = (
        {name: each["spec"]["podSpec"] for name, each in _workers(item).items()} for item in (pod_clique_set, existing)
    )
    return desired.keys() != present.keys() or any(
        coverage.missing(pod, present[name]) or coverage.missing(_started_with(present[name]), pod)
        for name, pod in desired.items()
    )


def _workers(pod_clique_set: KubeObject) -> dict[str, KubeObject]:
    cliques = cliques_of([pod_clique_set])
    return {each["name"]: each for each in cliques if (each.get("labels") or {}).get(labels.COMPONENT_TYPE) in WORKERS}


def _started_with(pod: KubeObject) -> KubeObject:
    fields = ("name", *_STARTED_WITH)
    return {"containers": [{field: each.get(field) for field in fields} for each in pod["containers"]]}


def is_scaled(desired: GroveWorkload, existing: KubeObject | None) -> bool:
    """Whether Grove has the desired replicas of a component: until then its counts refer to another number."""
    return existing is None or existing.get("spec", {}).get("replicas") == desired.replicas
