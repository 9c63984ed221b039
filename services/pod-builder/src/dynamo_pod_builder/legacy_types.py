"""Component types that pods carry from v1alpha1: selectors of a workload cannot change, and its pods need not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.v1beta1 import ComponentType


def legacy_type(component: KubeObject, workload: KubeObject | None) -> str:
    """`worker` where pods of a prefill or decode component carry that type, as the reference once created them; "" otherwise."""
    return _legacy_type(component.get("spec", {}).get("type", ""), objects.labels(_template_of(workload or {})))


def legacy_types(components: Sequence[KubeObject], sets: Sequence[KubeObject]) -> dict[str, str]:
    """The same of a graph's components (`spec.components`) that run as PodCliqueSets, by component."""
    marks: dict[str, dict[str, str]] = {}
    for each in sets:
        for clique in each.get("spec", {}).get("template", {}).get("cliques", ()):
            found = clique.get("labels") or {}
            marks.setdefault(found.get(labels.COMPONENT, ""), found)
    types = {each["name"]: _legacy_type(each.get("type", ""), marks.get(each["name"], {})) for each in components}
    return {name: type_ for name, type_ in types.items() if type_}


def unlabelled_model(workload: KubeObject | None) -> bool:
    """Whether pods of a component that serves a model lack its label, as earlier releases and the reference create them."""
    return _is_unlabelled(objects.labels(_template_of(workload or {})))


def unlabelled_models(sets: Sequence[KubeObject]) -> frozenset[str]:
    """The same of PodCliqueSets: components with such pods."""
    return frozenset(
        marks.get(labels.COMPONENT, "")
        for each in sets
        for clique in each.get("spec", {}).get("template", {}).get("cliques", ())
        if _is_unlabelled(marks := clique.get("labels") or {})
    )


def _is_unlabelled(marks: Mapping[str, str]) -> bool:
    return labels.BASE_MODEL_HASH in marks and labels.BASE_MODEL not in marks


def _legacy_type(type_: str, marks: Mapping[str, str]) -> str:
    if type_ not in (ComponentType.PREFILL, ComponentType.DECODE):
        return ""
    of_old = marks.get(labels.COMPONENT_TYPE) == ComponentType.WORKER
    return ComponentType.WORKER.value if of_old and marks.get(labels.SUB_COMPONENT_TYPE, type_) == type_ else ""


def _template_of(workload: KubeObject) -> KubeObject:
    spec = workload.get("spec") or {}
    template: KubeObject = spec.get("template") or (spec.get("leaderWorkerTemplate") or {}).get("workerTemplate") or {}
    return template
