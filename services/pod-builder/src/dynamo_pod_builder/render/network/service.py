"""Services: one per component, and one per model, by which DynamoModels find its workers."""

from collections.abc import Mapping

from dynamo_shared.api.base_models import base_model_hash
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels, ports
from dynamo_shared.api.registry.annotations import BASE_MODEL
from dynamo_shared.api.resources import SERVICES
from dynamo_shared.api.v1beta1 import ComponentType

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.metadata import MANAGED_BY, new_object, object_annotations, object_labels
from dynamo_pod_builder.render.pod.placement import PodRole
from dynamo_pod_builder.render.pod.template import PROPAGATED


def needs_service(context: PodContext) -> bool:
    """With Kubernetes discovery every component has one, because discovery reads their EndpointSlices.

    Frontends always have one, and endpoint pickers, because the InferencePool names it.
    """
    return context.discovery.kubernetes or context.spec.type in (ComponentType.FRONTEND, ComponentType.EPP)


def component_service(context: PodContext, own_labels: Mapping[str, str], owner: KubeObject) -> KubeObject:
    """Service of a component. It does not select by worker hash: all generations of a rolling update serve it."""
    label_set = {**object_labels(context, own_labels), **context.discovery.labels}
    # Only the leaders of a LeaderWorkerSet serve.
    selected = {labels.ROLE: PodRole.LEADER.value} if context.nodes > 1 else {}
    return _service(context, label_set, object_annotations(context), owner, selected)


def clique_service(context: PodContext, owner: KubeObject) -> KubeObject:
    """Service of a component whose pods Grove makes. It has no annotations that the platform passes on to pods."""
    of_pods = (labels.COMPONENT_CLASS, labels.WORKER_HASH)
    own = {name: value for name, value in context.template_labels.items() if name not in of_pods}
    annotations = {name: value for name, value in context.template_annotations.items() if name not in PROPAGATED}
    return _service(context, {**own, **context.discovery.labels}, annotations, owner, {})


def ray_service(context: PodContext, owner: KubeObject) -> KubeObject:
    """Headless Service of a single-pod component that heads a Ray cluster, for joining pods, even before it is ready."""
    made = clique_service(context, owner)
    of = made["metadata"]
    # Discovery must not list this Service.
    kept = {name: value for name, value in of.get("labels", {}).items() if name not in context.discovery.labels}
    spec = {
        "type": "ClusterIP",
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": made["spec"]["selector"],
        "ports": [
            {**_entry(ports.VLLM_RAY, ports.VLLM_RAY.number), "name": "ray-gcs"},
            _entry(ports.SYSTEM, ports.SYSTEM.name),
        ],
    }
    name, annotations = names.ray_service(context.name), of.get("annotations")
    return new_object(SERVICES, name, context.namespace, kept, annotations=annotations, owner=owner, spec=spec)


def _service(
    context: PodContext,
    label_set: dict[str, str],
    annotations: dict[str, str],
    owner: KubeObject,
    selected: Mapping[str, str],
) -> KubeObject:
    selector = {
        labels.DYNAMO_NAMESPACE: context.dynamo_namespace,
        labels.COMPONENT: context.component,
        # Pods without a type lack this label.
        **({labels.COMPONENT_TYPE: context.type} if context.type else {}),
        **selected,
    }
    return new_object(
        SERVICES,
        names.service(context.name),
        context.namespace,
        label_set,
        annotations=annotations,
        owner=owner,
        spec={"type": "ClusterIP", "selector": selector, "ports": [_port(context.spec.type)]},
    )


def model_service(model: str, namespace: str, owner: KubeObject) -> KubeObject:
    """Headless Service over all workers of a model in the namespace, across graphs."""
    digest = base_model_hash(model)
    return new_object(
        SERVICES,
        names.model_service(model),
        namespace,
        {labels.BASE_MODEL_HASH: digest, labels.MANAGED_BY: MANAGED_BY},
        annotations={BASE_MODEL: model},
        owner=owner,
        spec={
            "type": "ClusterIP",
            "clusterIP": "None",
            "selector": {labels.BASE_MODEL_HASH: digest},
            "ports": [_entry(ports.SYSTEM, ports.SYSTEM.number)],
        },
    )


def _port(component_type: ComponentType | None) -> KubeObject:
    if component_type is ComponentType.FRONTEND:
        return _entry(ports.HTTP, ports.HTTP.name)
    if component_type is ComponentType.EPP:
        return {**_entry(ports.EPP_GRPC, ports.EPP_GRPC.number), "appProtocol": "http2"}
    return _entry(ports.SYSTEM, ports.SYSTEM.name)


def _entry(port: ports.Port, target: int | str) -> KubeObject:
    return {"name": port.name, "port": port.number, "targetPort": target, "protocol": "TCP"}
