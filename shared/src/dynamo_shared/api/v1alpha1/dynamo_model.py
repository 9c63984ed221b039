"""DynamoModel: a model that a graph serves, or an adapter that is loaded into its workers."""

from typing import Literal

from dynamo_shared.api.meta import ObjectMeta, StatusCondition
from dynamo_shared.api.model import ApiModel, Bool, Int
from dynamo_shared.api.v1alpha1.enums import ModelType


class ModelSource(ApiModel):
    """Where an adapter comes from."""

    uri: str
    """s3://bucket/path, hf://organization/name for Hugging Face, or file:///path that the workers have."""


class DynamoModelSpec(ApiModel):
    """The model, and what it belongs to."""

    model_name: str
    """Name that clients ask for."""
    base_model_name: str
    """Base model, as modelRef of components names it; it finds the endpoints, and cannot be changed later."""
    model_type: ModelType = ModelType.BASE
    """base, lora or adapter; lora is loaded into the workers. It cannot be changed later."""
    source: ModelSource | None = None
    """Where an adapter comes from; required for lora."""


class ModelEndpoint(ApiModel):
    """A worker that serves the base model."""

    address: str
    """URL of the worker, such as http://10.0.0.7:9090."""
    pod_name: str | None = None
    """Pod of the worker."""
    ready: Bool
    """Whether it serves the model: always of a base model, of an adapter once it has said that it is loaded."""


class DynamoModelStatus(ApiModel):
    """Where a model is served."""

    endpoints: list[ModelEndpoint] | None = None
    """Workers that serve the base model and are ready."""
    ready_endpoints: Int
    """Workers that serve the model: of an adapter, those that have it loaded."""
    total_endpoints: Int
    """Workers that serve the base model and are ready, counted."""
    conditions: list[StatusCondition] | None = None
    """Aspects of the state: EndpointsReady, ServicesFound."""


class DynamoModel(ApiModel):
    """A model that graphs serve, or a LoRA adapter that is loaded into their workers."""

    api_version: Literal["nvidia.com/v1alpha1"] = "nvidia.com/v1alpha1"
    kind: Literal["DynamoModel"] = "DynamoModel"
    metadata: ObjectMeta
    spec: DynamoModelSpec | None = None
    """The model, and what it belongs to."""
    status: DynamoModelStatus | None = None
    """Where the model is served, written by the platform."""
