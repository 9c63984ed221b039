"""A worker generation that is there already under another hash: made by the reference operator, or by an earlier version of ours.

What a hash stands for counts, not its value: where the workers that are there are the pods that are wanted, they keep their names
and their hash, and no pod is replaced. One of the following can be the case:

1. Something of the wanted generation is there: nothing is adopted; it is a generation like any other.
2. A generation of the same components makes the same pods: it is the wanted one, all of its workers together. Of several,
   the newest.
3. None does: a rolling update replaces them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import (
    LAST_APPLIED_GENERATION,
    OPERATOR_ORIGIN_VERSION,
    PRESERVED_FIELDS,
    RESTART_AT,
)
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS
from dynamo_shared.api.v1beta1 import ComponentType, parse_component
from dynamo_shared.kube import coverage

from dynamo_pod_builder import render
from dynamo_pod_builder.status.workload import WORKLOADS

_WORKLOAD_KINDS = frozenset(resource.kind for resource in WORKLOADS)
#: How many pods there are, not what they are.
_SCALE = frozenset({"replicas", "scalingAdapter"})
#: Annotations of a pod template that make no other pods.
_PASSING = frozenset({RESTART_AT, OPERATOR_ORIGIN_VERSION})


def adopted(
    wanted: Sequence[KubeObject],
    present: Sequence[KubeObject],
    workload_of: Callable[[KubeObject], KubeObject | None],
    config: render.RenderConfig,
    service_account: str = "default",
) -> list[KubeObject]:
    """`wanted` with its workers under the names and the hash of those among `present` (DCDs) that make the same pods."""
    workers = {_component_of(child): child for child in wanted if _is_worker(child)}
    there = {each["metadata"]["name"] for each in present}
    if not workers or any(child["metadata"]["name"] in there for child in workers.values()):
        return list(wanted)
    for generation in _generations(present, workers.keys()):
        named = {name: _as(child, generation[name]) for name, child in workers.items()}
        if all(
            _same(named[name], generation[name], workload_of(generation[name]), config, service_account)
            for name in workers
        ):
            return [named[_component_of(child)] if _is_worker(child) else child for child in wanted]
    return list(wanted)


def legacy_type(component: KubeObject, workload: KubeObject | None) -> str:
    """`worker` where pods of a prefill or decode component carry that type, as the reference once made them; "" otherwise.

    Selectors of a workload cannot change, and its pods need not.
    """
    marks = (_template_of(workload or {}).get("metadata") or {}).get("labels") or {}
    return _legacy_type(component.get("spec", {}).get("type", ""), marks)


def legacy_types(components: Sequence[KubeObject], sets: Sequence[KubeObject]) -> dict[str, str]:
    """The same of a graph's components (`spec.components`) that run as PodCliqueSets, by component."""
    marks: dict[str, dict[str, str]] = {}
    for each in sets:
        for clique in each.get("spec", {}).get("template", {}).get("cliques", ()):
            found = clique.get("labels") or {}
            marks.setdefault(found.get(labels.COMPONENT, ""), found)
    types = {each["name"]: _legacy_type(each.get("type", ""), marks.get(each["name"], {})) for each in components}
    return {name: type_ for name, type_ in types.items() if type_}


def _legacy_type(type_: str, marks: Mapping[str, str]) -> str:
    if type_ not in (ComponentType.PREFILL, ComponentType.DECODE):
        return ""
    of_old = marks.get(labels.COMPONENT_TYPE) == ComponentType.WORKER
    return ComponentType.WORKER.value if of_old and marks.get(labels.SUB_COMPONENT_TYPE, type_) == type_ else ""


def _generations(present: Sequence[KubeObject], components: Any) -> list[dict[str, KubeObject]]:
    """Generations that have exactly these components, by component, the newest first."""
    found: dict[str, dict[str, KubeObject]] = {}
    for each in present:
        marks = each["metadata"].get("labels", {})
        if marks.get(labels.COMPONENT) in components:
            found.setdefault(marks.get(labels.WORKER_HASH, ""), {})[marks[labels.COMPONENT]] = each
    complete = [generation for generation in found.values() if generation.keys() == components]
    return sorted(complete, key=_made_at, reverse=True)


def _made_at(generation: dict[str, KubeObject]) -> str:
    return max(str(each["metadata"].get("creationTimestamp", "")) for each in generation.values())


def _as(child: KubeObject, there: KubeObject) -> KubeObject:
    """A wanted DCD under the name and the hash of one that is there."""
    spec, theirs = child["spec"], there["spec"]
    template = spec.get("podTemplate") or {}
    metadata = template.get("metadata") or {}
    marks = ((theirs.get("podTemplate") or {}).get("metadata") or {}).get("labels") or {}
    spec = {
        **spec,
        "podTemplate": {
            **template,
            "metadata": {**metadata, "labels": _with_hash(metadata.get("labels") or {}, marks)},
        },
    }
    if "backendFramework" in theirs:
        # It cannot be changed.
        spec["backendFramework"] = theirs["backendFramework"]
    own = child["metadata"]
    found = there["metadata"]
    named = {**own, "name": found["name"], "labels": _with_hash(own["labels"], found.get("labels", {}))}
    return {**child, "metadata": named, "spec": spec}


def _with_hash(marks: dict[str, str], theirs: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in marks.items() if name != labels.WORKER_HASH}
    return {**kept, labels.WORKER_HASH: theirs[labels.WORKER_HASH]} if labels.WORKER_HASH in theirs else kept


def _same(
    wanted: KubeObject,
    there: KubeObject,
    workload: KubeObject | None,
    config: render.RenderConfig,
    service_account: str,
) -> bool:
    """Whether a DCD makes the pods that are wanted."""
    if _notes(wanted).get(PRESERVED_FIELDS) == _notes(there).get(PRESERVED_FIELDS) and (
        render.canonical(_essence(wanted["spec"])) == render.canonical(_essence(there["spec"]))
    ):
        return True
    observed = render.ObservedComponent(service_account=service_account, legacy_type=legacy_type(wanted, workload))
    ours = _workload(wanted, config, observed)
    if ours is None:
        return False
    theirs = _workload(there, config, observed)
    if theirs is not None and ours == theirs and _claimed(wanted) == _claimed(there):
        return True
    # The reference keeps what only v1alpha1 can say where we do not look for it: its pods themselves tell.
    of_reference = LAST_APPLIED_GENERATION in _notes(there)
    return of_reference and workload is not None and not coverage.missing(ours, {**workload, "metadata": {}})


def _workload(
    component: KubeObject, config: render.RenderConfig, observed: render.ObservedComponent
) -> KubeObject | None:
    """Kind and spec of what runs a component's pods, but for their number."""
    spec = component["spec"]
    # The origin, unlike the restart, decides how pods are made.
    template = _without(spec.get("podTemplate") or {}, frozenset({RESTART_AT}))
    try:
        plain = parse_component({**component, "spec": {**spec, "podTemplate": template}})
        children = render.component_children(plain, config, observed)
    except (InvalidManifest, render.RenderError):
        return None
    found = next((child for child in children if child["kind"] in _WORKLOAD_KINDS), None)
    if found is None:
        return None
    return {"kind": found["kind"], "spec": {name: value for name, value in found["spec"].items() if name not in _SCALE}}


def _claimed(component: KubeObject) -> list[Any]:
    """What devices the pods of a component claim, which the pods themselves do not tell: a template beside them does."""
    spec, name = parse_component(component).spec, _component_of(component)
    templates = render.claim_templates("", name, "", spec, spec.pod_template or {}, owner={})
    return [template["spec"] for template in templates]


def _essence(spec: KubeObject) -> KubeObject:
    kept = {name: value for name, value in spec.items() if name not in _SCALE}
    kept["podTemplate"] = _without(spec.get("podTemplate") or {}, _PASSING)
    return kept


def _without(template: KubeObject, names: frozenset[str]) -> KubeObject:
    metadata = template.get("metadata") or {}
    notes = {name: value for name, value in (metadata.get("annotations") or {}).items() if name not in names}
    return {**template, "metadata": {**metadata, "annotations": notes}}


def _template_of(workload: KubeObject) -> KubeObject:
    spec = workload.get("spec") or {}
    template: KubeObject = spec.get("template") or (spec.get("leaderWorkerTemplate") or {}).get("workerTemplate") or {}
    return template


def _notes(obj: KubeObject) -> dict[str, str]:
    notes: dict[str, str] = obj["metadata"].get("annotations") or {}
    return notes


def _component_of(obj: KubeObject) -> str:
    return str(obj["metadata"].get("labels", {}).get(labels.COMPONENT, ""))


def _is_worker(child: KubeObject) -> bool:
    return child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind and labels.WORKER_HASH in child["metadata"].get(
        "labels", {}
    )
