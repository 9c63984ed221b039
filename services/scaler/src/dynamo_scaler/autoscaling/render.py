"""A HorizontalPodAutoscaler or a ScaledObject that writes to an adapter. Pure."""

from dynamo_shared.api.contracts import ComponentAutoscaling
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import OPERATOR, labels
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    HORIZONTAL_POD_AUTOSCALERS,
    SCALED_OBJECTS,
    Resource,
    controller_reference,
)

#: The default metric (as in the reference, seed 004).
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


#: With it, KEDA admits a ScaledObject next to the HPA that its `advanced` part names (keda.sh, "Transfer ownership of an
#: existing HPA").
_TRANSFER = "scaledobject.keda.sh/transfer-hpa-ownership"


def autoscaler(adapter: KubeObject, settings: ComponentAutoscaling) -> KubeObject:
    """The requested autoscaler, with the name of the adapter, which owns it."""
    return _scaled_object(adapter, settings) if settings.triggers else _horizontal(adapter, settings)


def described(child: KubeObject) -> str:
    """A short description of the autoscaler, for people."""
    spec = child["spec"]
    least = spec.get("minReplicas", spec.get("minReplicaCount"))
    most = spec.get("maxReplicas", spec.get("maxReplicaCount"))
    return f"{child['kind']} {child['metadata']['name']} between {least} and {most} replicas"


def taking_over(scaled_object: KubeObject, hpa: str) -> KubeObject:
    """A ScaledObject that KEDA's webhook checks as if the adapter's HPA were gone. Use it only for a dry run."""
    metadata, spec = scaled_object["metadata"], scaled_object["spec"]
    advanced = spec.get("advanced", {})
    config = {**advanced.get("horizontalPodAutoscalerConfig", {}), "name": hpa}
    return {
        **scaled_object,
        "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), _TRANSFER: "true"}},
        "spec": {**spec, "advanced": {**advanced, "horizontalPodAutoscalerConfig": config}},
    }


def _horizontal(adapter: KubeObject, settings: ComponentAutoscaling) -> KubeObject:
    spec: KubeObject = {
        "scaleTargetRef": _target(adapter),
        "minReplicas": settings.min_replicas,
        "maxReplicas": settings.max_replicas,
        "metrics": settings.metrics or [CPU],
    }
    if settings.behavior is not None:
        spec["behavior"] = settings.behavior
    return _object(HORIZONTAL_POD_AUTOSCALERS, adapter, spec)


def _scaled_object(adapter: KubeObject, settings: ComponentAutoscaling) -> KubeObject:
    optional = {
        "pollingInterval": settings.polling_interval,
        "cooldownPeriod": settings.cooldown_period,
        "idleReplicaCount": settings.idle_replicas,
        "fallback": settings.fallback,
        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": settings.behavior}} if settings.behavior else None,
    }
    spec: KubeObject = {
        "scaleTargetRef": _target(adapter),
        "minReplicaCount": settings.min_replicas,
        "maxReplicaCount": settings.max_replicas,
        "triggers": settings.triggers,
        **{name: value for name, value in optional.items() if value is not None},
    }
    return _object(SCALED_OBJECTS, adapter, spec)


def _target(adapter: KubeObject) -> KubeObject:
    resource = DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS
    return {**resource.type_meta, "name": adapter["metadata"]["name"]}


def _object(resource: Resource, adapter: KubeObject, spec: KubeObject) -> KubeObject:
    metadata, reference = adapter["metadata"], adapter["spec"]["dgdRef"]
    owner = DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS
    return {
        **resource.type_meta,
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": {
                labels.GRAPH_DEPLOYMENT_NAME: reference["name"],
                labels.COMPONENT: reference["componentName"],
                labels.APP_MANAGED_BY: OPERATOR,
            },
            "ownerReferences": [controller_reference(owner, metadata["name"], metadata["uid"])],
        },
        "spec": spec,
    }
