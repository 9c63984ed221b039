"""DynamoComponentDeployment in v1alpha1."""

from typing import Literal

from pydantic import Field

from dynamo_shared.api.meta import ObjectMeta
from dynamo_shared.api.model import ApiModel
from dynamo_shared.api.v1alpha1.component import ServiceSpec
from dynamo_shared.api.v1alpha1.status import ComponentStatus
from dynamo_shared.api.v1beta1 import BackendFramework


class DynamoComponentDeploymentSpec(ServiceSpec):
    """Desired component."""

    service_name: str | None = None
    """Name of the component in its graph; metadata.name by default."""
    backend_framework: BackendFramework | None = None
    """Inference engine; by default detected from the command. It cannot be changed later."""


class DynamoComponentDeployment(ApiModel):
    """One component of a graph: a frontend, workers of one type, a planner or an endpoint picker."""

    api_version: Literal["nvidia.com/v1alpha1"] = "nvidia.com/v1alpha1"
    kind: Literal["DynamoComponentDeployment"] = "DynamoComponentDeployment"
    metadata: ObjectMeta
    spec: DynamoComponentDeploymentSpec = Field(default_factory=DynamoComponentDeploymentSpec)
    """Desired component."""
    status: ComponentStatus | None = None
    """State of the component, written by the platform."""
