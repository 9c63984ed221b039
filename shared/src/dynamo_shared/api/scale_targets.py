"""What an HPA or a ScaledObject scales, where that is one of our adapters."""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS


def scaled_adapter(autoscaler: KubeObject) -> str:
    """Name of the scaling adapter that an autoscaler targets, in its own namespace; "" where it scales anything else."""
    spec = autoscaler.get("spec")
    target = spec.get("scaleTargetRef") if isinstance(spec, dict) else None
    if not isinstance(target, dict) or target.get("kind") != DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.kind:
        return ""
    return str(target.get("name") or "")
