"""Checkpoint settings that this platform cannot provide: refused by name, not ignored."""

from dynamo_shared.api.v1alpha1 import DynamoCheckpointSpec
from dynamo_shared.api.v1beta1 import ComponentSpec, ComponentType

from dynamo_pod_builder.render.config import CheckpointDefaults
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.sharing.spec import memory_has_pods, memory_service

#: Reasons of the condition JobCreated; the second one is the reference's.
DISABLED, GPU_MEMORY = "CheckpointsDisabled", "GMSSnapshotDisabled"
_NO_ENGINE = (ComponentType.FRONTEND, ComponentType.PLANNER, ComponentType.EPP)
_OFF = "the platform is installed without checkpoints"
_TURN_ON = "set checkpoint.enabled in the operator configuration"
_SHARED = "a checkpoint does not hold the memory of a GPU memory service"


def check_checkpoint(name: str, spec: ComponentSpec, defaults: CheckpointDefaults) -> None:
    """Raise RenderError for a component that cannot start from a checkpoint here."""
    if spec.experimental is None or spec.experimental.start is None:
        return
    at = "experimental.checkpoint"
    if not defaults.enabled:
        raise RenderError(name, at, _OFF, f"{_TURN_ON}, or leave it out")
    if spec.type in _NO_ENGINE:
        raise RenderError(name, at, f"a component of type {spec.type} loads no model", "leave it out")
    automatic = spec.experimental.start.is_automatic
    if memory_service(spec) is not None and (automatic or not defaults.gpu_memory):
        raise RenderError(name, at, _SHARED, "leave one of experimental.checkpoint and gpuMemoryService out")
    if memory_has_pods(spec):
        raise RenderError(
            name,
            at,
            "a checkpoint is of one pod, and its GPU memory would be in another",
            "use gpuMemoryService IntraPod",
        )
    if spec.multinode is not None and spec.multinode.node_count > 1:
        raise RenderError(name, at, "a checkpoint is of one pod, not of several nodes", "leave it or multinode out")


def refusal(spec: DynamoCheckpointSpec, defaults: CheckpointDefaults) -> tuple[str, str] | None:
    """Reason and message if a checkpoint may not be taken here."""
    if not defaults.enabled:
        return DISABLED, f"{_OFF}; {_TURN_ON}"
    if spec.gpu_memory_service is not None and spec.gpu_memory_service.enabled and not defaults.gpu_memory:
        return GPU_MEMORY, f"{_SHARED}; leave spec.gpuMemoryService out"
    return None
