"""DynamoModel: a model that a graph serves, or an adapter that is loaded into its workers."""

from typing import Literal

from dynamo_shared.api.meta import ObjectMeta, StatusCondition
from dynamo_shared.api.model import ApiModel, Bool, Int
from dynamo_shared.api.v1alpha1.enums import ModelType


class ModelSource(ApiModel):
    """Source of an adapter."""

    uri: str
    """s3://bucket/path, hf://organization/name for Hugging Face, or file:///path in the workers' pods."""


class DynamoModelSpec(ApiModel):
    """The model and its base model."""

    model_name: str
    """Model name that clients request."""
    base_model_name: str
    """Base model, as in modelRef of components; endpoints are selected by it. It cannot be changed later."""
    model_type: ModelType = ModelType.BASE
    """base, lora or adapter; workers load lora. It cannot be changed later."""
    source: ModelSource | None = None
    """Source of an adapter; required for lora."""


class ModelEndpoint(ApiModel):
    """A worker that serves the base model."""

    address: str
    """URL of the worker, such as http://10.0.0.7:9090."""
    pod_name: str | None = None
    """Pod of the worker."""
    ready: Bool
    """Whether it serves the model: a base model always, an adapter after the worker has reported that it is loaded."""


class DynamoModelStatus(ApiModel):
    """Endpoints of a model."""

    endpoints: list[ModelEndpoint] | None = None
    """Workers that serve the base model and are ready."""
    ready_endpoints: Int
    """Number of workers that serve the model; for an adapter, of workers that have loaded it."""
    total_endpoints: Int
    """Number of workers that serve the base model and are ready."""
    conditions: list[StatusCondition] | None = None
    """Aspects of the state: EndpointsReady, ServicesFound."""


class DynamoModel(ApiModel):
    """A model that graphs serve, or a LoRA adapter that is loaded into their workers."""

    api_version: Literal["nvidia.com/v1alpha1"] = "nvidia.com/v1alpha1"
    kind: Literal["DynamoModel"] = "DynamoModel"
    metadata: ObjectMeta
    spec: DynamoModelSpec | None = None
    """The model and its base model."""
    status: DynamoModelStatus | None = None
    """Endpoints of the model, written by the platform."""
