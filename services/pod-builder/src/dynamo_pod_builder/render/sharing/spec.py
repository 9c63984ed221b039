"""What a component specifies about shared GPU memory and about failover of engines."""

from dynamo_shared.api.v1beta1 import ComponentSpec, Failover, GpuMemoryService
from dynamo_shared.api.v1beta1.enums import SharingMode

#: Engines of a pod, of which one waits for the other to fail.
ENGINES_WITHIN_POD = 2


def engine_name(number: int) -> str:
    """Name of the container of one of a pod's engines; `number` counts from 0."""
    return f"engine-{number}"


def memory_service(spec: ComponentSpec) -> GpuMemoryService | None:
    """The GPU memory service of a component, or None."""
    return spec.experimental.gpu_memory_service if spec.experimental is not None else None


def memory_has_pods(spec: ComponentSpec) -> bool:
    """Whether the GPU memory service runs in separate pods, not in those of the engines."""
    service = memory_service(spec)
    return service is not None and service.mode is SharingMode.INTER_POD


def fails_over(spec: ComponentSpec) -> Failover | None:
    """Failover of a component, or None."""
    return spec.experimental.failover if spec.experimental is not None else None


def fails_over_within_pod(spec: ComponentSpec) -> bool:
    """Whether each pod has several engines."""
    failover = fails_over(spec)
    return failover is not None and failover.mode is SharingMode.INTRA_POD


def fails_over_between_pods(spec: ComponentSpec) -> bool:
    """Whether each rank has several pods, each with an engine."""
    failover = fails_over(spec)
    return failover is not None and failover.mode is SharingMode.INTER_POD


def pods_a_rank(spec: ComponentSpec, shadows: int | None) -> int:
    """The number of pods with an engine per rank if these pods share memory: the one that serves, and those that wait.

    `shadows`: the number of waiting pods in v1alpha1, if it is more than v1beta1 can express.
    """
    failover = fails_over(spec)
    if failover is None:
        return 1
    return 1 + (failover.num_shadows if shadows is None else shadows)
