"""DynamoWorkerMetadata: how a worker is discovered, where Kubernetes itself is the service discovery."""

from typing import Literal

from dynamo_shared.api.meta import ObjectMeta
from dynamo_shared.api.model import ApiModel, FreeForm


class DynamoWorkerMetadataSpec(ApiModel):
    """What a worker reports about itself."""

    data: FreeForm
    """Endpoints, model cards and whatever else the runtime registers."""


class DynamoWorkerMetadata(ApiModel):
    """What a worker's pod reports about itself; the pod writes it, and it goes with the pod."""

    api_version: Literal["nvidia.com/v1alpha1"] = "nvidia.com/v1alpha1"
    kind: Literal["DynamoWorkerMetadata"] = "DynamoWorkerMetadata"
    metadata: ObjectMeta
    spec: DynamoWorkerMetadataSpec | None = None
    """What the worker reports about itself."""
