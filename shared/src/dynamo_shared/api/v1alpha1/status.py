"""Status of graphs and components in v1alpha1, written by the platform."""

from pydantic import ConfigDict

from dynamo_shared.api import v1beta1
from dynamo_shared.api.meta import StatusCondition
from dynamo_shared.api.model import ApiModel, Int64, StringMap, Timestamp


class ServiceReplicas(v1beta1.ComponentReplicas):
    """Numbers of a service's replicas."""

    component_name: str
    """Name of the object that runs the pods; the newest if componentNames has several."""


class RollingUpdateStatus(ApiModel):
    """Progress of the replacement of a graph's workers."""

    phase: v1beta1.RollingUpdatePhase | None = None
    """Pending, InProgress, Completed or Failed; empty before the first."""
    start_time: Timestamp | None = None
    """Time of its start."""
    end_time: Timestamp | None = None
    """Time of its end."""
    updated_services: list[str] | None = None
    """Services that run the new workers."""


class GraphStatus(ApiModel):
    """State of a graph."""

    # Required although it has a default: the API server sets it in a status without it.
    model_config = ConfigDict(json_schema_extra={"required": ["state"]})

    state: v1beta1.GraphState = v1beta1.GraphState.INITIALIZING
    """initializing, pending, successful or failed."""
    observed_generation: Int64 | None = None
    """metadata.generation that this status describes."""
    conditions: list[StatusCondition] | None = None
    """Aspects of the state; Ready summarizes them."""
    services: dict[str, ServiceReplicas] | None = None
    """Replicas by service."""
    rolling_update: RollingUpdateStatus | None = None
    """Replacement of workers, in progress or complete."""
    restart: v1beta1.RestartStatus | None = None
    """Restart that spec.restart requests."""
    checkpoints: dict[str, v1beta1.CheckpointStatus] | None = None
    """Checkpoints by service."""


class ComponentStatus(ApiModel):
    """State of a DynamoComponentDeployment."""

    observed_generation: Int64 | None = None
    """metadata.generation that this status describes."""
    conditions: list[StatusCondition]
    """Aspects of the state; Available states whether the component serves."""
    service: ServiceReplicas | None = None
    """Replicas of the component."""
    pod_selector: StringMap | None = None
    """Labels of the component's pods."""
