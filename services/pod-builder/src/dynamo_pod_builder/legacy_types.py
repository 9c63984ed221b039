"""Component types that pods have from v1alpha1: the selectors of a workload cannot change, and its pods need not."""

from collections.abc import Iterable, Mapping, Sequence

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.probes import PROBES
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import OPERATOR_COMPONENT_SPEC, OPERATOR_GRAPH_SPEC, PRESERVED_FIELDS
from dynamo_shared.api.v1beta1 import ComponentType

#: Annotations with the fields of v1alpha1 that v1beta1 does not have.
_LEGACY = frozenset({PRESERVED_FIELDS, OPERATOR_COMPONENT_SPEC, OPERATOR_GRAPH_SPEC})


def legacy_type(component: KubeObject, workload: KubeObject | None) -> str:
    """`worker` if pods of a prefill or decode component have that type, as the reference once made them; otherwise ""."""
    return _legacy_type(component.get("spec", {}).get("type", ""), objects.labels(_template_of(workload or {})))


def legacy_types(components: Sequence[KubeObject], cliques: Iterable[KubeObject]) -> dict[str, str]:
    """`legacy_type` for a graph's components (`spec.components`) that run as cliques of PodCliqueSets, by component."""
    clique_labels: dict[str, dict[str, str]] = {}
    for each in cliques:
        of_clique = each.get("labels") or {}
        clique_labels.setdefault(of_clique.get(labels.COMPONENT, ""), of_clique)
    types = {
        each["name"]: _legacy_type(each.get("type", ""), clique_labels.get(each["name"], {})) for each in components
    }
    return {name: type_ for name, type_ in types.items() if type_}


def missing_from(component: KubeObject, workload: KubeObject | None) -> frozenset[str]:
    """What pods of a component deployment lack that later releases write: labels of their model, which the reference
    does not set either, and of a sub-type of v1alpha1, and probe delays of a frontend sidecar, for example
    `front.readinessProbe`.
    """
    template = _template_of(workload or {})
    return _lacking(component, component.get("spec", {}), objects.labels(template), template.get("spec") or {})


def missing_from_cliques(graph: KubeObject, cliques: Iterable[KubeObject]) -> dict[str, frozenset[str]]:
    """`missing_from` for cliques of a graph, by component."""
    specs = {each["name"]: each for each in graph["spec"].get("components", ())}
    of_cliques = ((each.get("labels") or {}, (each.get("spec") or {}).get("podSpec") or {}) for each in cliques)
    return {
        (name := own.get(labels.COMPONENT, "")): _lacking(graph, specs.get(name, {}), own, pod)
        for own, pod in of_cliques
    }


def _lacking(of: KubeObject, spec: KubeObject, pod_labels: Mapping[str, str], pod: KubeObject) -> frozenset[str]:
    later = [(labels.BASE_MODEL_HASH, labels.BASE_MODEL)]
    if not _LEGACY.isdisjoint(objects.annotations(of)):
        later.append((labels.COMPONENT, labels.SUB_COMPONENT_TYPE))
    at_once = [
        f"{each['name']}.{probe}"
        for each in pod.get("containers") or ()
        if each.get("name") == spec.get("frontendSidecar", "")
        for probe in PROBES
        if probe in each and not each[probe].get("initialDelaySeconds")
    ]
    return frozenset(label for known, label in later if known in pod_labels and label not in pod_labels).union(at_once)


def _legacy_type(type_: str, clique_labels: Mapping[str, str]) -> str:
    if type_ not in (ComponentType.PREFILL, ComponentType.DECODE):
        return ""
    of_old = clique_labels.get(labels.COMPONENT_TYPE) == ComponentType.WORKER
    return ComponentType.WORKER.value if of_old and clique_labels.get(labels.SUB_COMPONENT_TYPE, type_) == type_ else ""


def _template_of(workload: KubeObject) -> KubeObject:
    spec = workload.get("spec") or {}
    template: KubeObject = spec.get("template") or (spec.get("leaderWorkerTemplate") or {}).get("workerTemplate") or {}
    return template
