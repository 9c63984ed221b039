"""DynamoNimDeployment, the predecessor of DynamoComponentDeployment, which deploys a service of an artifact."""

from typing import Literal

from pydantic import Field

from dynamo_shared.api.legacy.service import LegacyServiceSpec, LegacyStatus
from dynamo_shared.api.meta import EnvVar, ObjectMeta
from dynamo_shared.api.model import ApiModel, Int32


class DynamoNimDeploymentSpec(LegacyServiceSpec):
    """One service of an artifact."""

    dynamo_namespace: str
    """Dynamo namespace of the service."""
    dynamo_nim: str
    """Artifact with the service, as name--tag."""
    dynamo_tag: str
    """The service in the artifact, as module:class."""
    service_name: str
    """Name of the service."""
    envs: list[EnvVar] = Field(default=[])
    """Environment variables of the service."""
    replicas: Int32 = Field(default=1, ge=0)
    """Desired replicas."""


class DynamoNimDeployment(ApiModel):
    """One service of an artifact. The platform runs it as a DynamoGraphDeployment of the same name."""

    api_version: Literal["nvidia.com/v1alpha1"] = "nvidia.com/v1alpha1"
    kind: Literal["DynamoNimDeployment"] = "DynamoNimDeployment"
    metadata: ObjectMeta
    spec: DynamoNimDeploymentSpec | None = None
    """One service of an artifact."""
    status: LegacyStatus | None = None
    """State of the service."""
