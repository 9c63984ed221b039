"""PersistentVolumeClaims that a graph requests in v1alpha1."""

from collections.abc import Iterable

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import PERSISTENT_VOLUME_CLAIMS
from dynamo_shared.api.v1beta1 import DynamoGraphDeployment

from dynamo_pod_builder.render.metadata import new_object_of


def volume_claims(graph: DynamoGraphDeployment, claims: Iterable[KubeObject]) -> list[KubeObject]:
    """Claims to create; pods wait for the others if they do not exist."""
    return [_claim(graph, claim) for claim in claims if claim.get("create")]


def _claim(graph: DynamoGraphDeployment, claim: KubeObject) -> KubeObject:
    spec: KubeObject = {
        "accessModes": [claim["volumeAccessMode"]],
        "resources": {"requests": {"storage": str(claim["size"])}},
    }
    if claim.get("storageClass"):
        spec["storageClassName"] = claim["storageClass"]
    label_set = {labels.GRAPH_DEPLOYMENT_NAME: graph.metadata.name}
    return new_object_of(graph, PERSISTENT_VOLUME_CLAIMS, claim["name"], label_set, spec=spec)
