"""DynamoDeployment, the predecessor of DynamoGraphDeployment, which deploys an artifact."""

from typing import Literal

from dynamo_shared.api.legacy.service import LegacyStatus, ServiceOverride
from dynamo_shared.api.meta import EnvVar, ObjectMeta
from dynamo_shared.api.model import ApiModel


class DynamoDeploymentSpec(ApiModel):
    """Artifact to deploy, and changes to it."""

    dynamo_nim: str
    """Artifact with the services, as name:tag."""
    services: dict[str, ServiceOverride] | None = None
    """Changes to the services of the artifact, by service."""
    envs: list[EnvVar] | None = None
    """Environment variables of all services."""


class DynamoDeploymentStatus(LegacyStatus):
    """State of a deployment."""

    state: str | None = None
    """State of the deployment, from the states of its services."""


class DynamoDeployment(ApiModel):
    """All services of an artifact. The platform runs it as a DynamoGraphDeployment of the same name."""

    api_version: Literal["nvidia.com/v1alpha1"] = "nvidia.com/v1alpha1"
    kind: Literal["DynamoDeployment"] = "DynamoDeployment"
    metadata: ObjectMeta
    spec: DynamoDeploymentSpec | None = None
    """Artifact to deploy, and changes to it."""
    status: DynamoDeploymentStatus | None = None
    """State of the deployment."""
