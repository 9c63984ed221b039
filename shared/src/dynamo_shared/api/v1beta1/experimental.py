"""Experimental features of a component: checkpoints, shared GPU memory, failover. They may change between versions."""

from typing import Annotated

from pydantic import Field

from dynamo_shared.api.meta import PodTemplate
from dynamo_shared.api.model import ApiModel, Bool, Int32, StringMap
from dynamo_shared.api.v1beta1.enums import (
    BackendFramework,
    CheckpointDeletionPolicy,
    CheckpointMode,
    CheckpointStartupPolicy,
    SharingMode,
)

ContainerName = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
#: Each once.
ClientContainers = Annotated[list[ContainerName], Field(json_schema_extra={"x-kubernetes-list-type": "set"})]


class CheckpointIdentity(ApiModel):
    """What makes two checkpoints the same."""

    model: str = Field(min_length=1)
    """Model that is loaded."""
    backend_framework: BackendFramework
    """Inference engine that loaded it."""
    dynamo_version: str | None = None
    """Version of Dynamo."""
    tensor_parallel_size: Int32 = Field(default=1, ge=1)
    """GPUs over which each layer is spread."""
    pipeline_parallel_size: Int32 = Field(default=1, ge=1)
    """Stages over which the layers are spread."""
    dtype: str | None = None
    """Number format of the weights."""
    max_model_len: Int32 | None = Field(default=None, ge=1)
    """Longest context, in tokens."""
    extra_parameters: StringMap | None = None
    """Anything else that sets checkpoints apart."""


class CaptureJob(ApiModel):
    """Pod of which a checkpoint is taken automatically: the component's own, with this laid over it."""

    gms_client_containers: ClientContainers | None = None
    """Containers of it that use the GPU memory service, of which no checkpoint is taken."""
    pod_template: PodTemplate | None = None
    """What it has beyond the engine's container, or otherwise."""


class CheckpointPolicies(ApiModel):
    """What later releases say of the checkpoint of a component."""

    startup_policy: CheckpointStartupPolicy | None = None
    """Immediate, which is the default: pods start without the checkpoint until it is ready. WaitForCheckpoint: none start."""
    deletion_policy: CheckpointDeletionPolicy | None = None
    """Of a checkpoint that was taken automatically: Delete, which is the default, has it go with the graph, Retain has it stay.
    A DynamoCheckpoint always stays: it serves all components that name it."""
    target_container_name: ContainerName | None = None
    """Container of the engine, main by default; a DynamoCheckpoint is of main."""
    job: CaptureJob | None = None
    """Pod of which the checkpoint is taken automatically."""


class ComponentCheckpoint(CheckpointPolicies):
    """Checkpoint that pods of a component start from."""

    enabled: Bool | None = None
    """true alone has a checkpoint taken of the component itself, false switches it off; left out, it counts by being there."""
    mode: CheckpointMode = CheckpointMode.AUTO
    """Auto makes a missing DynamoCheckpoint, Manual waits for one."""
    checkpoint_ref: str | None = None
    """Name of a DynamoCheckpoint or a PodSnapshot in the same namespace; wins over identity."""
    identity: CheckpointIdentity | None = None
    """Identity of a DynamoCheckpoint."""

    @property
    def is_automatic(self) -> bool:
        """Whether a checkpoint is taken of the component itself, for its graph."""
        return self.enabled is True and not self.checkpoint_ref and self.identity is None

    @property
    def waits(self) -> bool:
        """Whether no pod starts before it is ready."""
        return self.startup_policy is CheckpointStartupPolicy.WAIT_FOR_CHECKPOINT


class GpuMemoryService(ApiModel):
    """Keeps model weights in GPU memory outside the engine, so that an engine restarts without loading them."""

    mode: SharingMode = SharingMode.INTRA_POD
    """IntraPod runs it next to the engine, InterPod in a pod of its own."""
    device_class_name: str = "gpu.nvidia.com"
    """DeviceClass that the GPUs are claimed from."""
    extra_client_containers: ClientContainers | None = None
    """Other containers of the pod that use it, and share its GPUs; with IntraPod only."""


class Failover(ApiModel):
    """Keeps a second engine ready to take over."""

    mode: SharingMode = SharingMode.INTRA_POD
    """IntraPod keeps it in the same pod, InterPod in another one."""
    num_shadows: Int32 = Field(default=1, ge=1, le=1)
    """Engines that wait."""


class GroveOptions(ApiModel):
    """How Grove runs a component."""

    force_scaling_group: Bool | None = None
    """Makes a scaling group of a component on one node, as of those on several: replicas beyond minAvailable are placed each
    by itself. It cannot be changed later."""


class Experimental(ApiModel):
    """Features that may change without notice."""

    gpu_memory_service: GpuMemoryService | None = None
    """Weights in GPU memory that engines share."""
    failover: Failover | None = None
    """A second engine, ready to take over; needs gpuMemoryService."""
    grove: GroveOptions | None = None
    """How Grove runs the component."""
    checkpoint: ComponentCheckpoint | None = None
    """Start from a checkpoint of a loaded engine."""

    @property
    def start(self) -> ComponentCheckpoint | None:
        """The checkpoint that pods start from; None where it is switched off."""
        return None if self.checkpoint is None or self.checkpoint.enabled is False else self.checkpoint
