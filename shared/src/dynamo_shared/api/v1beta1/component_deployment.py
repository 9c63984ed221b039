"""DynamoComponentDeployment: one component, created for a graph or by a user."""

from functools import partial
from typing import Literal

from pydantic import Field

from dynamo_shared.api.meta import ObjectMeta
from dynamo_shared.api.model import ApiModel, parse
from dynamo_shared.api.v1beta1.component import ComponentName, ComponentSpec
from dynamo_shared.api.v1beta1.enums import BackendFramework
from dynamo_shared.api.v1beta1.status import ComponentStatus


class DynamoComponentDeploymentSpec(ComponentSpec):
    """Desired component."""

    name: ComponentName | None = None
    """Name of the component in its graph; metadata.name by default."""
    backend_framework: BackendFramework | None = None
    """Inference engine; by default detected from the command. It cannot be changed later."""


class DynamoComponentDeployment(ApiModel):
    """One component of a graph: a frontend, workers of one type, a planner or an endpoint picker."""

    api_version: Literal["nvidia.com/v1beta1"] = "nvidia.com/v1beta1"
    kind: Literal["DynamoComponentDeployment"] = "DynamoComponentDeployment"
    metadata: ObjectMeta
    spec: DynamoComponentDeploymentSpec = Field(default_factory=DynamoComponentDeploymentSpec)
    """Desired component."""
    status: ComponentStatus | None = None
    """State of the component, written by the platform."""


parse_component = partial(parse, DynamoComponentDeployment)
