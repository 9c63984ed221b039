"""PersistentVolumeClaims that a graph requests in v1alpha1."""

from collections.abc import Iterable

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import PERSISTENT_VOLUME_CLAIMS

from dynamo_pod_builder.render.metadata import object_metadata


def volume_claims(graph: str, namespace: str, claims: Iterable[KubeObject], owner: KubeObject) -> list[KubeObject]:
    """Claims to create; pods wait for the others if they do not exist."""
    return [_claim(graph, namespace, claim, owner) for claim in claims if claim.get("create")]


def _claim(graph: str, namespace: str, claim: KubeObject, owner: KubeObject) -> KubeObject:
    spec: KubeObject = {
        "accessModes": [claim["volumeAccessMode"]],
        "resources": {"requests": {"storage": str(claim["size"])}},
    }
    if claim.get("storageClass"):
        spec["storageClassName"] = claim["storageClass"]
    label_set = {labels.GRAPH_DEPLOYMENT_NAME: graph}
    return {
        **PERSISTENT_VOLUME_CLAIMS.type_meta,
        "metadata": object_metadata(claim["name"], namespace, label_set, {}, owner),
        "spec": spec,
    }
