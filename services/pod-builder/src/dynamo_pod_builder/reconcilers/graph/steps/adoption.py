"""Step 2: an existing worker generation with another hash, from the reference operator or an earlier platform.

The content behind a hash counts, not its value: if the existing workers are the desired pods, they keep their names and
their hash, and no pod is replaced. One of the following cases holds:

1. An object of the desired generation exists: nothing is adopted; it is a generation like any other.
2. A generation of the same components makes the same pods: it is the desired one, if all of its workers match. If
   several match, the newest.
3. No generation does: a rolling update replaces them.
"""

from collections.abc import Iterable, Mapping, Set
from typing import Any

from dynamo_shared.api import objects
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import (
    CURRENT_WORKER_HASH,
    CURRENT_WORKER_HASH_V2,
    LAST_APPLIED_GENERATION,
    OPERATOR_ORIGIN_VERSION,
    PRESERVED_FIELDS,
    RESTART_AT,
)
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS
from dynamo_shared.api.role_templates import serving_template, with_templates
from dynamo_shared.api.v1beta1 import parse_component
from dynamo_shared.kube import coverage

from dynamo_pod_builder import render
from dynamo_pod_builder.legacy_types import legacy_type, missing_from
from dynamo_pod_builder.reconcilers.graph.observed import Observed
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.render.config import NO_CLAIMS
from dynamo_pod_builder.status.workload import WORKLOADS

_WORKLOAD_KINDS = frozenset(resource.kind for resource in WORKLOADS)
#: These fields are the number of pods, not their content.
_SCALE = frozenset({"replicas", "scalingAdapter"})
#: Annotations of a pod template that do not change the pods.
_PASSING = frozenset({RESTART_AT, OPERATOR_ORIGIN_VERSION})


def adopt(plan: Plan, observed: Observed) -> Plan:
    """The plan with the desired workers under the names and the hash of existing workers that make the same pods."""
    workers = {_component_of(child): child for child in plan.desired if _is_worker(child)}
    existing = observed.components
    if any(objects.name(child) in existing for child in workers.values()):
        return plan
    annotations = objects.annotations(observed.graph)
    current = annotations.get(CURRENT_WORKER_HASH_V2) or annotations.get(CURRENT_WORKER_HASH, "")
    for generation in _generations(existing.values(), workers.keys(), current):
        named = {name: _as(child, generation[name]) for name, child in workers.items()}
        if all(_same(named[name], generation[name], observed) for name in workers):
            return plan.with_children(
                [named[_component_of(child)] if _is_worker(child) else child for child in plan.desired]
            )
    return plan


def _generations(present: Iterable[KubeObject], components: Set[str], current: str) -> list[dict[str, KubeObject]]:
    """Generations that have exactly these components, by component: the current one by its hash, then the newest first."""
    generations: dict[str, dict[str, KubeObject]] = {}
    for each in present:
        if _component_of(each) in components:
            generations.setdefault(objects.labels(each).get(labels.WORKER_HASH, ""), {})[_component_of(each)] = each
    complete = {name: each for name, each in generations.items() if each.keys() == components}
    newest_first = sorted(complete, key=lambda name: _created_at(complete[name]), reverse=True)
    return [complete[name] for name in sorted(newest_first, key=lambda name: name != current)]


def _created_at(generation: Mapping[str, KubeObject]) -> str:
    return max(map(objects.created_at, generation.values()))


def _as(child: KubeObject, existing: KubeObject) -> KubeObject:
    """A desired DCD with the name and the hash of an existing one."""
    spec, theirs = child["spec"], existing["spec"]
    hashed = objects.labels(serving_template(theirs))
    spec = with_templates({"podTemplate": {}, **spec}, lambda each: _hashed(each, hashed))
    if "backendFramework" in theirs:
        # This field cannot be changed.
        spec["backendFramework"] = theirs["backendFramework"]
    own = _with_hash(objects.labels(child), objects.labels(existing))
    return {**child, "metadata": {**child["metadata"], "name": objects.name(existing), "labels": own}, "spec": spec}


def _hashed(template: KubeObject, theirs: Mapping[str, str]) -> KubeObject:
    label_set = _with_hash(objects.labels(template), theirs)
    return {**template, "metadata": {**(template.get("metadata") or {}), "labels": label_set}}


def _with_hash(own: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in own.items() if name != labels.WORKER_HASH}
    return {**kept, labels.WORKER_HASH: theirs[labels.WORKER_HASH]} if labels.WORKER_HASH in theirs else kept


def _same(desired: KubeObject, existing: KubeObject, observed: Observed) -> bool:
    """Whether an existing DCD makes the desired pods."""
    preserved = (objects.annotations(each).get(PRESERVED_FIELDS) for each in (desired, existing))
    if len(set(preserved)) == 1 and (
        render.canonical(_comparable_spec(desired["spec"])) == render.canonical(_comparable_spec(existing["spec"]))
    ):
        return True
    workload = observed.workloads.get(objects.name(existing))
    around = render.ObservedComponent(
        service_account=observed.around.service_account,
        legacy_type=legacy_type(desired, workload),
        lacking=missing_from(desired, workload) | missing_from(existing, workload),
        claimed=observed.claimed.get(desired["spec"].get("name", ""), NO_CLAIMS),
    )
    desired_workload = _workload(desired, observed.config, around)
    if desired_workload is None:
        return False
    theirs = _workload(existing, observed.config, around)
    if theirs is not None and desired_workload == theirs and _claimed(desired) == _claimed(existing):
        return True
    # The reference keeps v1alpha1-only fields where this platform does not read them, so its pods are compared instead.
    of_reference = LAST_APPLIED_GENERATION in objects.annotations(existing)
    return (
        of_reference and workload is not None and not coverage.missing(desired_workload, {**workload, "metadata": {}})
    )


def _workload(
    component: KubeObject, config: render.RenderConfig, observed: render.ObservedComponent
) -> KubeObject | None:
    """Kind and spec of the workload that runs a component's pods, without their number."""
    spec = component["spec"]
    # The origin version, unlike the restart, decides how pods are made.
    try:
        plain = parse_component({**component, "spec": _without(spec, {RESTART_AT})})
        children = render.component_children(plain, config, observed)
    except (InvalidManifest, render.RenderError):
        return None
    child = next(child for child in children if child["kind"] in _WORKLOAD_KINDS)
    return {"kind": child["kind"], "spec": {name: value for name, value in child["spec"].items() if name not in _SCALE}}


def _claimed(component: KubeObject) -> list[Any]:
    """The devices that the pods of a component claim; only a separate template next to the pods has them."""
    spec, name = parse_component(component).spec, _component_of(component)
    templates = render.claim_templates("", name, "", spec, spec.pod_template or {}, owner={})
    return [template["spec"] for template in templates]


def _comparable_spec(spec: KubeObject) -> KubeObject:
    return _without({name: value for name, value in spec.items() if name not in _SCALE}, _PASSING)


def _without(spec: KubeObject, names: Set[str]) -> KubeObject:
    def change(template: KubeObject) -> KubeObject:
        kept = {name: value for name, value in objects.annotations(template).items() if name not in names}
        return {**template, "metadata": {**(template.get("metadata") or {}), "annotations": kept}}

    # An earlier version of the platform stored the component as its author wrote it.
    return render.typed_component(with_templates({"podTemplate": {}, **spec}, change))


def _component_of(obj: KubeObject) -> str:
    return objects.labels(obj).get(labels.COMPONENT, "")


def _is_worker(child: KubeObject) -> bool:
    return child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind and labels.WORKER_HASH in objects.labels(child)
