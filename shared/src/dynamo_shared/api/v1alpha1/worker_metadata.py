"""DynamoWorkerMetadata: registration of a worker, if Kubernetes is the service discovery."""

from typing import Literal

from dynamo_shared.api.meta import ObjectMeta
from dynamo_shared.api.model import ApiModel, FreeForm


class DynamoWorkerMetadataSpec(ApiModel):
    """What a worker reports about itself."""

    data: FreeForm
    """Endpoints, model cards and other data that the runtime registers."""


class DynamoWorkerMetadata(ApiModel):
    """Data that a worker's pod reports about itself; the pod writes it, and Kubernetes deletes it with the pod."""

    api_version: Literal["nvidia.com/v1alpha1"] = "nvidia.com/v1alpha1"
    kind: Literal["DynamoWorkerMetadata"] = "DynamoWorkerMetadata"
    metadata: ObjectMeta
    spec: DynamoWorkerMetadataSpec | None = None
    """What the worker reports about itself."""
