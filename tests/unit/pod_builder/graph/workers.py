"""Builders of component deployments of several worker generations."""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import DEPLOYMENT_STRATEGY


def component(
    name: str, hash_: str | None, replicas: int = 1, component: str = "Worker", strategy: str = ""
) -> KubeObject:
    """A component deployment. Without a hash it is not a worker, or is from before hashes."""
    of_component = {labels.COMPONENT: component, **({labels.WORKER_HASH: hash_} if hash_ else {})}
    template = {"metadata": {"annotations": {DEPLOYMENT_STRATEGY: strategy}}} if strategy else {}
    metadata = {"name": name, "labels": of_component}
    spec = {"replicas": replicas, "podTemplate": template}
    return {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoComponentDeployment", "metadata": metadata, "spec": spec}
