"""Metadata of rendered objects: names, labels, annotations, owners."""

from collections.abc import Mapping
from typing import Any

from dynamo_shared.api.base_models import base_model_hash
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import OPERATOR, labels
from dynamo_shared.api.registry.annotations import BASE_MODEL, ENABLE_METRICS, OPERATOR_ORIGIN_VERSION
from dynamo_shared.api.resources import Resource
from dynamo_shared.api.v1beta1 import ComponentType, DynamoGraphDeployment

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.context import PodContext, namespace_of, owner_of

#: Value of managed-by labels: the reference's, because dashboards and users select by it.
MANAGED_BY = OPERATOR


def object_labels(context: PodContext, own: Mapping[str, str]) -> dict[str, str]:
    """Labels of Deployment, Service and pods, lowest priority first: component deployment, pod template, platform."""
    label_set = {**own, **context.template_labels, labels.COMPONENT: context.component}
    label_set[labels.DYNAMO_NAMESPACE] = context.dynamo_namespace
    if context.of_graph:
        label_set[labels.GRAPH_DEPLOYMENT_NAME] = context.graph
    if part := context.legacy.part or _part_of_type(context):
        label_set[labels.SUB_COMPONENT_TYPE] = part
    if context.spec.model_ref is not None:
        label_set[labels.BASE_MODEL_HASH] = base_model_hash(context.spec.model_ref.name)
    return label_set


def pod_labels(context: PodContext, own: Mapping[str, str]) -> dict[str, str]:
    """Labels of pods: those of the objects, and those by which pods are selected."""
    label_set = {**object_labels(context, own), labels.SELECTOR: context.name, **context.discovery.labels}
    lacking, written = context.observed.lacking, {**own, **context.template_labels}
    if labels.SUB_COMPONENT_TYPE in lacking - written.keys() and not _part_of_type(context):
        label_set.pop(labels.SUB_COMPONENT_TYPE, None)
    if context.type:
        label_set[labels.COMPONENT_TYPE] = context.type
    if context.spec.model_ref is not None and labels.BASE_MODEL not in lacking:
        label_set[labels.BASE_MODEL] = names.model_label(context.spec.model_ref.name)
    if context.template_annotations.get(ENABLE_METRICS) != "false":
        label_set[labels.METRICS_ENABLED] = "true"
    return label_set if context.observed.restore is None else {**label_set, **context.observed.restore.labels}


def _part_of_type(context: PodContext) -> str:
    return context.spec.type.value if context.spec.type in (ComponentType.PREFILL, ComponentType.DECODE) else ""


def restore_annotations(context: PodContext) -> dict[str, str]:
    """Annotations of pods that start from a checkpoint; empty for others."""
    return {} if context.observed.restore is None else context.observed.restore.annotations(context.engines)


def object_annotations(context: PodContext) -> dict[str, str]:
    """Annotations of Deployment, Service and pods: the template's without the origin version, and the model."""
    annotations = pod_annotations(context.template_annotations)
    if context.spec.model_ref is not None:
        annotations[BASE_MODEL] = context.spec.model_ref.name
    return annotations


def pod_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    """Annotations of a pod template that pods get: not the platform's version, because an upgrade must not roll them."""
    return {name: value for name, value in annotations.items() if name != OPERATOR_ORIGIN_VERSION}


def new_object(
    resource: Resource,
    name: str,
    namespace: str,
    label_set: Mapping[str, str],
    *,
    annotations: Mapping[str, str] | None = None,
    owner: KubeObject | None = None,
    **content: Any,
) -> KubeObject:
    """An object with this content; empty parts of its metadata are omitted."""
    metadata: KubeObject = {"name": name, "namespace": namespace}
    if label_set:
        metadata["labels"] = label_set
    if annotations:
        metadata["annotations"] = annotations
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    return {**resource.type_meta, "metadata": metadata, **content}


def new_object_of(
    graph: DynamoGraphDeployment,
    resource: Resource,
    name: str,
    label_set: Mapping[str, str],
    *,
    annotations: Mapping[str, str] | None = None,
    **content: Any,
) -> KubeObject:
    """An object that a graph owns, in the graph's namespace."""
    return new_object(
        resource, name, namespace_of(graph), label_set, annotations=annotations, owner=owner_of(graph), **content
    )
