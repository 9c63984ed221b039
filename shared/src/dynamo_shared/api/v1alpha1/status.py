"""What the platform reports about graphs and components in v1alpha1."""

from pydantic import ConfigDict

from dynamo_shared.api import v1beta1
from dynamo_shared.api.meta import StatusCondition
from dynamo_shared.api.model import ApiModel, Int64, StringMap, Timestamp


class ServiceReplicas(v1beta1.ComponentReplicas):
    """Pods of a service, counted."""

    component_name: str
    """Name of the object that runs the pods; the newest, where componentNames has several."""


class RollingUpdateStatus(ApiModel):
    """How far the exchange of a graph's workers is."""

    phase: v1beta1.RollingUpdatePhase | None = None
    """Pending, InProgress, Completed or Failed; empty before the first."""
    start_time: Timestamp | None = None
    """When it began."""
    end_time: Timestamp | None = None
    """When it was over."""
    updated_services: list[str] | None = None
    """Services that run the new workers."""


class GraphStatus(ApiModel):
    """State of a graph."""

    # Required although it has a default, as the API server fills it in for a status that comes without.
    model_config = ConfigDict(json_schema_extra={"required": ["state"]})

    state: v1beta1.GraphState = v1beta1.GraphState.INITIALIZING
    """initializing, pending, successful or failed."""
    observed_generation: Int64 | None = None
    """metadata.generation that this status is about."""
    conditions: list[StatusCondition] | None = None
    """Aspects of the state; Ready sums them up."""
    services: dict[str, ServiceReplicas] | None = None
    """Replicas by service."""
    rolling_update: RollingUpdateStatus | None = None
    """Exchange of workers, while and after it happens."""
    restart: v1beta1.RestartStatus | None = None
    """Restart asked for in spec.restart."""
    checkpoints: dict[str, v1beta1.CheckpointStatus] | None = None
    """Checkpoints by service."""


class ComponentStatus(ApiModel):
    """State of a DynamoComponentDeployment."""

    observed_generation: Int64 | None = None
    """metadata.generation that this status is about."""
    conditions: list[StatusCondition]
    """Aspects of the state; Available says whether the component serves."""
    service: ServiceReplicas | None = None
    """Replicas of the component."""
    pod_selector: StringMap | None = None
    """Labels that the component's pods have."""
