"""The scaling adapter that an HPA or a ScaledObject scales."""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS
from dynamo_shared.api.untrusted.reading import mapping


def scaled_adapter(autoscaler: KubeObject) -> str:
    """Name of the scaling adapter that an autoscaler targets, in the same namespace; "" for other targets."""
    target = mapping(mapping(autoscaler.get("spec")).get("scaleTargetRef"))
    if target.get("kind") != DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.kind:
        return ""
    return str(target.get("name") or "")
