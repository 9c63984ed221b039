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
#: Each name once.
ClientContainers = Annotated[list[ContainerName], Field(json_schema_extra={"x-kubernetes-list-type": "set"})]


class CheckpointIdentity(ApiModel):
    """Properties that identify a checkpoint."""

    model: str = Field(min_length=1)
    """Model that the engine loads."""
    backend_framework: BackendFramework
    """Inference engine that loads it."""
    dynamo_version: str | None = None
    """Version of Dynamo."""
    tensor_parallel_size: Int32 = Field(default=1, ge=1)
    """GPUs over which each layer is split."""
    pipeline_parallel_size: Int32 = Field(default=1, ge=1)
    """Stages over which the layers are split."""
    dtype: str | None = None
    """Number format of the weights."""
    max_model_len: Int32 | None = Field(default=None, ge=1)
    """Longest context, in tokens."""
    extra_parameters: StringMap | None = None
    """Other parameters that distinguish checkpoints."""


class CaptureJob(ApiModel):
    """Pod from which a checkpoint is taken automatically: the component's pod, with these changes."""

    gms_client_containers: ClientContainers | None = None
    """Its containers that use the GPU memory service; these are not part of the checkpoint."""
    pod_template: PodTemplate | None = None
    """Changes to the component's pod template, such as further containers."""


class CheckpointPolicies(ApiModel):
    """Fields of a component's checkpoint in later releases."""

    startup_policy: CheckpointStartupPolicy | None = None
    """Immediate (default): pods start without the checkpoint until it is ready. WaitForCheckpoint: pods wait for it."""
    deletion_policy: CheckpointDeletionPolicy | None = None
    """For a checkpoint that was taken automatically: Delete (default) deletes it with the graph, Retain keeps it.
    A DynamoCheckpoint is always kept, because it serves all components that name it."""
    target_container_name: ContainerName | None = None
    """Container of the engine, main by default; a DynamoCheckpoint is always of main."""
    job: CaptureJob | None = None
    """Pod from which the checkpoint is taken automatically."""


class ComponentCheckpoint(CheckpointPolicies):
    """Checkpoint that pods of a component start from."""

    enabled: Bool | None = None
    """true without checkpointRef and identity takes a checkpoint of the component; false disables checkpoints. Default: true."""
    mode: CheckpointMode = CheckpointMode.AUTO
    """Auto creates a missing DynamoCheckpoint, Manual waits for one."""
    checkpoint_ref: str | None = None
    """Name of a DynamoCheckpoint or a PodSnapshot in the same namespace; takes precedence over identity."""
    identity: CheckpointIdentity | None = None
    """Identity of a DynamoCheckpoint."""

    @property
    def is_automatic(self) -> bool:
        """Whether the platform takes a checkpoint of the component itself, for its graph."""
        return self.enabled is True and not self.checkpoint_ref and self.identity is None

    @property
    def waits(self) -> bool:
        """Whether pods wait until the checkpoint is ready."""
        return self.startup_policy is CheckpointStartupPolicy.WAIT_FOR_CHECKPOINT


class GpuMemoryService(ApiModel):
    """Keeps model weights in GPU memory outside the engine, so that an engine restarts without loading them."""

    mode: SharingMode = SharingMode.INTRA_POD
    """IntraPod runs it next to the engine, InterPod in a pod of its own."""
    device_class_name: str = "gpu.nvidia.com"
    """DeviceClass of the claims for the GPUs."""
    extra_client_containers: ClientContainers | None = None
    """Other containers of the pod that use it, and share its GPUs; only with IntraPod."""


class Failover(ApiModel):
    """Keeps a second engine ready to take over."""

    mode: SharingMode = SharingMode.INTRA_POD
    """IntraPod runs it in the same pod, InterPod in another pod."""
    num_shadows: Int32 = Field(default=1, ge=1, le=1)
    """Number of standby engines."""


class GroveOptions(ApiModel):
    """How Grove runs a component."""

    force_scaling_group: Bool | None = None
    """Runs a component on one node as a scaling group, like components on several nodes: replicas beyond minAvailable
    are placed individually. It cannot be changed later."""


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
        """The checkpoint that pods start from; None if it is disabled."""
        return None if self.checkpoint is None or self.checkpoint.enabled is False else self.checkpoint
