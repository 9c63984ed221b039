"""DynamoCheckpoint: the image of a loaded engine, from which pods start faster. Experimental."""

from functools import partial
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from dynamo_shared.api.meta import ObjectMeta, StatusCondition, WholePodTemplate
from dynamo_shared.api.model import ApiModel, Int32, Int64, Timestamp
from dynamo_shared.api.rules import Violations, rule, validations
from dynamo_shared.api.stored import parse
from dynamo_shared.api.v1alpha1.enums import CheckpointPhase, StorageType
from dynamo_shared.api.v1alpha1.experimental import CheckpointIdentity, GpuMemoryService
from dynamo_shared.api.v1alpha1.pods import SharedMemory


@rule("self == oldSelf", "identity cannot be changed; make another DynamoCheckpoint")
def identity_stays(_value: dict[str, Any]) -> Violations:
    """A manifest alone shows no change: only the API server compares it with what is stored."""
    return ()


class FixedIdentity(CheckpointIdentity):
    """What makes two checkpoints the same; it cannot be changed."""

    model_config = ConfigDict(json_schema_extra=validations(identity_stays))


class CheckpointJob(ApiModel):
    """Job that loads the engine and takes the checkpoint."""

    pod_template_spec: WholePodTemplate
    """Pod of the job; the engine is its container main."""
    shared_memory: SharedMemory | None = None
    """Shared memory of the pod; 8Gi by default."""
    active_deadline_seconds: Int64 = Field(default=3600, ge=1)
    """Seconds after which the job has failed."""
    backoff_limit: Int32 | None = Field(default=None, ge=0)
    """Ignored: the job runs once."""
    ttl_seconds_after_finished: Int32 | None = Field(default=None, ge=0)
    """Ignored: the job is kept for 300 seconds after its end."""


class DynamoCheckpointSpec(ApiModel):
    """What to checkpoint, and how."""

    identity: FixedIdentity
    """What makes two checkpoints the same; it cannot be changed."""
    job: CheckpointJob
    """Job that takes the checkpoint."""
    gpu_memory_service: GpuMemoryService | None = None
    """Weights in GPU memory that engines share."""


class DynamoCheckpointStatus(ApiModel):
    """State of a checkpoint."""

    phase: CheckpointPhase | None = None
    """Pending, Creating, Ready or Failed."""
    identity_hash: str | None = None
    """Hash of the identity; the checkpoint is selected by it."""
    job_name: str | None = None
    """Job that takes the checkpoint."""
    location: str | None = None
    """Where the checkpoint is in its storage."""
    storage_type: StorageType | None = None
    """Kind of storage: pvc, s3 or oci."""
    created_at: Timestamp | None = None
    """When the checkpoint was complete."""
    message: str | None = None
    """More about the phase, for people."""
    conditions: list[StatusCondition] | None = None
    """Aspects of the state."""


class DynamoCheckpoint(ApiModel):
    """Checkpoint of a loaded engine, from which pods start without loading. Experimental."""

    api_version: Literal["nvidia.com/v1alpha1"] = "nvidia.com/v1alpha1"
    kind: Literal["DynamoCheckpoint"] = "DynamoCheckpoint"
    metadata: ObjectMeta
    spec: DynamoCheckpointSpec | None = None
    """What to checkpoint, and how."""
    status: DynamoCheckpointStatus | None = None
    """State of the checkpoint, written by the platform."""


parse_checkpoint = partial(parse, DynamoCheckpoint)


def identity_of(checkpoint: dict[str, Any]) -> CheckpointIdentity | None:
    """Identity of a stored checkpoint, whatever else is wrong with it; None where it has none."""
    try:
        return CheckpointIdentity.model_validate(checkpoint.get("spec", {}).get("identity"), extra="ignore")
    except ValidationError:
        return None
