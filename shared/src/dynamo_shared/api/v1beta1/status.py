"""Status of graphs and components, written by the platform."""

from typing import Annotated

from pydantic import ConfigDict, Field

from dynamo_shared.api.meta import StatusCondition
from dynamo_shared.api.model import ApiModel, Bool, Int32, Int64, Timestamp, is_empty
from dynamo_shared.api.v1beta1.enums import ComponentKind, GraphState, RollingUpdatePhase

Conditions = Annotated[
    list[StatusCondition],
    Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
]


class ComponentReplicas(ApiModel):
    """Numbers of a component's replicas."""

    component_kind: ComponentKind
    """Kind of object that runs the pods."""
    component_names: list[str] | None = None
    """Names of these objects; more than one while workers are replaced."""
    replicas: Int32 = Field(ge=0)
    """Replicas that exist."""
    updated_replicas: Int32 = Field(ge=0)
    """Replicas with the newest pod template."""
    ready_replicas: Int32 | None = Field(default=None, ge=0)
    """Replicas that are ready."""
    available_replicas: Int32 | None = Field(default=None, ge=0)
    """Replicas that have been ready for long enough."""
    gpus_per_engine: Int64 | None = Field(default=None, ge=0)
    """GPUs of the engine of a replica, on all its nodes; absent if a claim does not state the number."""
    gpus_per_replica: Int64 | None = Field(default=None, ge=0)
    """GPUs that one more replica needs: of its engine and all other containers, a shared claim counted once."""


class RestartStatus(ApiModel):
    """Progress of a restart."""

    observed_id: str | None = Field(default=None, alias="observedID")
    """The id of the restart that this status describes."""
    phase: str | None = None
    """Pending, Restarting, Completed, Failed or Superseded."""
    in_progress: list[str] | None = None
    """Components that are restarting."""


class RollingUpdateStatus(ApiModel):
    """Progress of the replacement of a graph's workers."""

    phase: RollingUpdatePhase | None = None
    """Pending, InProgress, Completed or Failed; empty before the first."""
    start_time: Timestamp | None = None
    """Time of its start."""
    end_time: Timestamp | None = None
    """Time of its end."""
    updated_components: list[str] | None = None
    """Components that run the new workers."""


class CheckpointStatus(ApiModel):
    """Checkpoint of a component."""

    checkpoint_name: str | None = None
    """Name of the DynamoCheckpoint."""
    identity_hash: str | None = None
    """Hash of its identity."""
    ready: Bool | None = None
    """Whether pods can start from it."""


class GraphStatus(ApiModel):
    """State of a graph."""

    # Required although it has a default: the API server sets it in a status without it.
    model_config = ConfigDict(json_schema_extra={"required": ["state"]})

    state: GraphState = GraphState.INITIALIZING
    """initializing, pending, successful or failed."""
    observed_generation: Int64 | None = None
    """metadata.generation that this status describes."""
    conditions: Conditions = Field(default_factory=list, exclude_if=is_empty)
    """Aspects of the state; Ready summarizes them."""
    components: dict[str, ComponentReplicas] | None = None
    """Replicas by component."""
    rolling_update: RollingUpdateStatus | None = None
    """Replacement of workers, in progress or complete."""
    restart: RestartStatus | None = None
    """Restart that spec.restart requests."""
    checkpoints: dict[str, CheckpointStatus] | None = None
    """Checkpoints by component."""


class ComponentStatus(ApiModel):
    """State of a DynamoComponentDeployment."""

    observed_generation: Int64 | None = None
    """metadata.generation that this status describes."""
    conditions: Conditions = Field(default_factory=list, exclude_if=is_empty)
    """Aspects of the state; Available states whether the component serves."""
    component: ComponentReplicas | None = None
    """Replicas of the component."""
