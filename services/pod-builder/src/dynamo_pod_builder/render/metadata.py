"""Labels and annotations of what a component deployment makes."""

from __future__ import annotations

from collections.abc import Mapping

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import OPERATOR, labels
from dynamo_shared.api.registry.annotations import BASE_MODEL, ENABLE_METRICS, OPERATOR_ORIGIN_VERSION
from dynamo_shared.api.v1beta1 import ComponentType

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.context import PodContext

#: Value of managed-by labels; the reference's, since dashboards and users select by it.
MANAGED_BY = OPERATOR


def object_labels(context: PodContext, own: Mapping[str, str]) -> dict[str, str]:
    """Labels of Deployment, Service and pods: of the component deployment, the pod template, and ours, which win."""
    marks = {**own, **context.template_labels, labels.COMPONENT: context.component}
    marks[labels.DYNAMO_NAMESPACE] = context.dynamo_namespace
    if context.of_graph:
        marks[labels.GRAPH_DEPLOYMENT_NAME] = context.graph
    if context.spec.type in (ComponentType.PREFILL, ComponentType.DECODE):
        marks[labels.SUB_COMPONENT_TYPE] = context.spec.type.value
    if labels.WORKER_HASH in own:
        marks[labels.WORKER_HASH] = own[labels.WORKER_HASH]
    if context.spec.model_ref is not None:
        marks[labels.BASE_MODEL_HASH] = names.model_hash(context.spec.model_ref.name)
    return marks


def pod_labels(context: PodContext, own: Mapping[str, str]) -> dict[str, str]:
    """Labels of pods: those of the objects, and what selects pods."""
    marks = {**object_labels(context, own), labels.SELECTOR: context.name, **context.discovery.labels}
    if context.type:
        marks[labels.COMPONENT_TYPE] = context.type
    if context.spec.model_ref is not None and not context.unlabelled_model:
        marks[labels.BASE_MODEL] = names.model_label(context.spec.model_ref.name)
    if context.template_annotations.get(ENABLE_METRICS) != "false":
        marks[labels.METRICS_ENABLED] = "true"
    return marks if context.restore is None else {**marks, **context.restore.labels}


def restore_annotations(context: PodContext) -> dict[str, str]:
    """Annotations of pods that start from a checkpoint; none for others."""
    return {} if context.restore is None else context.restore.annotations(context.engines)


def object_annotations(context: PodContext) -> dict[str, str]:
    """Annotations of Deployment, Service and pods: the template's, and the model; not where a graph comes from."""
    marks = {key: value for key, value in context.template_annotations.items() if key not in _NOT_PASSED_ON}
    if context.spec.model_ref is not None:
        marks[BASE_MODEL] = context.spec.model_ref.name
    return marks


# An upgrade of the platform must not roll pods, so its version stays out of them.
_NOT_PASSED_ON = frozenset({OPERATOR_ORIGIN_VERSION})


def object_metadata(
    name: str, namespace: str, marks: dict[str, str], notes: dict[str, str], owner: KubeObject | None
) -> KubeObject:
    """`metadata` of an object; empty parts are left out."""
    metadata: KubeObject = {"name": name, "namespace": namespace}
    if marks:
        metadata["labels"] = marks
    if notes:
        metadata["annotations"] = notes
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    return metadata
