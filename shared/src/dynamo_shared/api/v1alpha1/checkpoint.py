"""DynamoCheckpoint: the image of a loaded engine, from which pods start faster. Experimental."""

from functools import partial
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from dynamo_shared.api.meta import ObjectMeta, StatusCondition, WholePodTemplate
from dynamo_shared.api.model import ApiModel, Int32, Int64, Timestamp, parse
from dynamo_shared.api.rules import Violations, rule, validations
from dynamo_shared.api.v1alpha1.enums import CheckpointPhase, StorageType
from dynamo_shared.api.v1alpha1.experimental import CheckpointIdentity, GpuMemoryService
from dynamo_shared.api.v1alpha1.pods import SharedMemory


@rule("self == oldSelf", "identity cannot be changed; create another DynamoCheckpoint")
def identity_stays(_value: dict[str, Any]) -> Violations:
    """A manifest alone shows no change: only the API server compares it with the stored object."""
    return ()


class FixedIdentity(CheckpointIdentity):
    """Properties that identify a checkpoint; they cannot be changed."""

    model_config = ConfigDict(json_schema_extra=validations(identity_stays))


class CheckpointJob(ApiModel):
    """Job that loads the engine and takes the checkpoint."""

    pod_template_spec: WholePodTemplate
    """Pod of the Job; the engine is the container main."""
    shared_memory: SharedMemory | None = None
    """Shared memory of the pod; 8Gi by default."""
    active_deadline_seconds: Int64 = Field(default=3600, ge=1)
    """Seconds after which the Job fails."""
    backoff_limit: Int32 | None = Field(default=None, ge=0)
    """Ignored: the Job runs once."""
    ttl_seconds_after_finished: Int32 | None = Field(default=None, ge=0)
    """Ignored: the Job is kept for 300 seconds after its end."""


class DynamoCheckpointSpec(ApiModel):
    """What to checkpoint, and how."""

    identity: FixedIdentity
    """Properties that identify the checkpoint; they cannot be changed."""
    job: CheckpointJob
    """Job that takes the checkpoint."""
    gpu_memory_service: GpuMemoryService | None = None
    """Weights in GPU memory that engines share."""


class DynamoCheckpointStatus(ApiModel):
    """State of a checkpoint."""

    phase: CheckpointPhase | None = None
    """Pending, Creating, Ready or Failed."""
    identity_hash: str | None = None
    """Hash of the identity; pods select the checkpoint by it."""
    job_name: str | None = None
    """Job that takes the checkpoint."""
    location: str | None = None
    """Location of the checkpoint in its storage."""
    storage_type: StorageType | None = None
    """Type of storage: pvc, s3 or oci."""
    created_at: Timestamp | None = None
    """Time at which the checkpoint was complete."""
    message: str | None = None
    """Details of the phase, for users."""
    conditions: list[StatusCondition] | None = None
    """Aspects of the state."""


class DynamoCheckpoint(ApiModel):
    """Checkpoint of a loaded engine; pods that start from it do not load the model. Experimental."""

    api_version: Literal["nvidia.com/v1alpha1"] = "nvidia.com/v1alpha1"
    kind: Literal["DynamoCheckpoint"] = "DynamoCheckpoint"
    metadata: ObjectMeta
    spec: DynamoCheckpointSpec | None = None
    """What to checkpoint, and how."""
    status: DynamoCheckpointStatus | None = None
    """State of the checkpoint, written by the platform."""


parse_checkpoint = partial(parse, DynamoCheckpoint)


def identity_of(checkpoint: dict[str, Any]) -> CheckpointIdentity | None:
    """Identity of a stored checkpoint, even if other fields are invalid; None if absent."""
    try:
        return CheckpointIdentity.model_validate(checkpoint.get("spec", {}).get("identity"), extra="ignore")
    except ValidationError:
        return None
