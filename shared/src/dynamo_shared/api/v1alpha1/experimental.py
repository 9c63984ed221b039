"""Experimental parts of a v1alpha1 service: checkpoints, shared GPU memory, failover."""

from pydantic import Field

from dynamo_shared.api import v1beta1
from dynamo_shared.api.model import ApiModel, Bool, Int32
from dynamo_shared.api.v1alpha1.enums import SharingMode
from dynamo_shared.api.v1beta1.experimental import CheckpointPolicies, ClientContainers


class CheckpointIdentity(v1beta1.CheckpointIdentity):
    """Properties that identify a checkpoint."""

    model: str
    """Model that the engine loads."""


class ComponentCheckpoint(CheckpointPolicies):
    """Checkpoint that pods of a service start from."""

    enabled: Bool = False
    """Starts pods from the checkpoint; without checkpointRef and identity, takes one of the component itself."""
    mode: v1beta1.CheckpointMode = v1beta1.CheckpointMode.AUTO
    """Auto creates a missing DynamoCheckpoint, Manual waits for one."""
    checkpoint_ref: str | None = None
    """Name of a DynamoCheckpoint or a PodSnapshot in the same namespace; takes precedence over identity."""
    identity: CheckpointIdentity | None = None
    """Identity of a DynamoCheckpoint."""


class GpuMemoryService(ApiModel):
    """Keeps model weights in GPU memory outside the engine, so that an engine restarts without loading them."""

    enabled: Bool
    """Runs the service."""
    mode: SharingMode = SharingMode.INTRA_POD
    """intraPod runs it next to the engine, interPod in a pod of its own."""
    device_class_name: str = "gpu.nvidia.com"
    """DeviceClass of the claims for the GPUs."""


class ServiceGpuMemory(GpuMemoryService):
    """Keeps model weights in GPU memory outside the engine, so that an engine restarts without loading them."""

    extra_client_containers: ClientContainers | None = None
    """Other containers of the pod that use it, and share its GPUs; only with intraPod."""


class Failover(ApiModel):
    """Keeps further engines ready to take over."""

    enabled: Bool
    """Runs them; needs gpuMemoryService with the same mode."""
    mode: SharingMode = SharingMode.INTRA_POD
    """intraPod runs them in the same pod, interPod in other pods."""
    num_shadows: Int32 = Field(default=1, ge=1)
    """Number of standby engines."""
