"""Checkpoint settings that this platform cannot provide: refused by name, not ignored."""

from dynamo_shared.api.v1alpha1 import DynamoCheckpointSpec
from dynamo_shared.api.v1beta1 import ComponentSpec, ComponentType

from dynamo_pod_builder.render.config import CheckpointDefaults
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.sharing.spec import memory_has_pods, memory_service

#: Reasons of the condition JobCreated; the second one is the reference's.
DISABLED, GPU_MEMORY = "CheckpointsDisabled", "GMSSnapshotDisabled"
_NO_ENGINE = (ComponentType.FRONTEND, ComponentType.PLANNER, ComponentType.EPP)
_DISABLED = "checkpoints are disabled on this platform; set checkpoint.enabled in the operator configuration"
_SHARED = "a checkpoint does not include the memory of a GPU memory service"


def check_checkpoint(name: str, spec: ComponentSpec, defaults: CheckpointDefaults) -> None:
    """Raise RenderError for a component that cannot start from a checkpoint here.

    Without checkpoints on the platform a component starts without one, as in the reference; admission warns.
    """
    if not defaults.enabled or spec.experimental is None or spec.experimental.start is None:
        return
    at = "experimental.checkpoint"
    if spec.type in _NO_ENGINE:
        raise RenderError(name, at, f"a component of type {spec.type} loads no model", "remove experimental.checkpoint")
    automatic = spec.experimental.start.is_automatic
    if memory_service(spec) is not None and (automatic or not defaults.gpu_memory):
        raise RenderError(name, at, _SHARED, "remove experimental.checkpoint or gpuMemoryService")
    if memory_has_pods(spec):
        raise RenderError(
            name,
            at,
            "a checkpoint captures one pod, and the GPU memory would be in another pod",
            "use gpuMemoryService IntraPod",
        )
    if spec.multinode is not None:
        raise RenderError(
            name, at, "a checkpoint captures one pod, not several nodes", "remove experimental.checkpoint or multinode"
        )


def refusal(spec: DynamoCheckpointSpec, defaults: CheckpointDefaults) -> tuple[str, str] | None:
    """Reason and message if a checkpoint may not be taken here."""
    if not defaults.enabled:
        return DISABLED, _DISABLED
    if spec.gpu_memory_service is not None and spec.gpu_memory_service.enabled and not defaults.gpu_memory:
        return GPU_MEMORY, f"{_SHARED}; remove spec.gpuMemoryService"
    return None
