"""Parts of a v1alpha1 service for its pods; v1beta1 has them in one pod template."""

from typing import Any

from pydantic import ConfigDict

from dynamo_shared.api import quantity
from dynamo_shared.api.meta import EnvVar, ResourceClaim
from dynamo_shared.api.model import ApiModel, Bool, Quantity, StringMap
from dynamo_shared.api.rules import Violations, rule, validations


class ResourceAmounts(ApiModel):
    """Amounts of a container's resources."""

    cpu: str | None = None
    """CPU cores, such as "4" or "500m"."""
    memory: str | None = None
    """Memory, such as 20Gi."""
    gpu: str | None = None
    """Number of GPUs, such as "1"."""
    gpu_type: str | None = None
    """Resource name of the GPUs; nvidia.com/gpu by default."""
    custom: StringMap | None = None
    """Amounts of other resources by name, such as rdma/ib."""


class ServiceResources(ApiModel):
    """Resources of the engine's container."""

    limits: ResourceAmounts | None = None
    """Limits of the container."""
    requests: ResourceAmounts | None = None
    """Requests of the container, which the scheduler reserves."""
    claims: list[ResourceClaim] | None = None
    """Claims of dynamic resource allocation that the container uses."""


class ExtraPodMetadata(ApiModel):
    """Metadata for the pods."""

    annotations: StringMap | None = None
    """Annotations of the pods."""
    labels: StringMap | None = None
    """Labels of the pods."""


class FrontendSidecar(ApiModel):
    """A frontend that runs next to the engine in each pod."""

    image: str
    """Image of the frontend."""
    args: list[str] | None = None
    """Arguments of the frontend, instead of the default arguments."""
    envs: list[EnvVar] | None = None
    """Environment variables of the frontend."""
    env_from_secret: str | None = None
    """Secret whose keys become environment variables of the frontend."""


@rule(
    "(has(self.disabled) && self.disabled) || (has(self.size) && quantity(self.size).isGreaterThan(quantity('0')))",
    "size must be set and above 0, unless disabled is true",
)
def shared_memory_has_a_size(value: dict[str, Any]) -> Violations:
    """Shared memory is disabled, or has a size above zero. The API server reads only sizes in quotation marks."""
    if value.get("disabled") is True:
        return
    size = value.get("size")
    if size is None:
        yield (), "size must be set, or disabled must be true"
    elif isinstance(size, int) and not isinstance(size, bool):
        example = size if 0 < size < 1024 else 8
        yield ("size",), f'must be a string, such as "{example}Gi"; write a number of bytes in quotation marks'
    elif isinstance(size, str) and (amount := quantity.amount_of(size)) is not None and amount <= 0:
        yield ("size",), f"{size!r} is not allowed; write an amount such as 8Gi, or disabled: true"


class SharedMemory(ApiModel):
    """Shared memory of the pods, at /dev/shm."""

    model_config = ConfigDict(json_schema_extra=validations(shared_memory_has_a_size))

    disabled: Bool | None = None
    """Disables the platform's shared memory for the pods."""
    size: Quantity | None = None
    """Size, such as 16Gi; required unless disabled."""


class VolumeMount(ApiModel):
    """Mount of a volume in the engine's container."""

    name: str
    """PersistentVolumeClaim in the same namespace, such as one of spec.pvcs."""
    mount_point: str | None = None
    """Path in the container; by default, the engine's own path for a compilation cache."""
    use_as_compilation_cache: Bool = False
    """Caches compiled kernels there between starts."""


@rule(
    "!has(self.create) || self.create == false || (has(self.size) && has(self.storageClass) && has(self.volumeAccessMode))",
    "create needs size, storageClass and volumeAccessMode",
)
def created_claims_are_complete(value: dict[str, Any]) -> Violations:
    """A claim that the platform creates needs all these fields."""
    if value.get("create") is True:
        missing = [name for name in ("size", "storageClass", "volumeAccessMode") if name not in value]
        if missing:
            yield (), f"create: true needs {', '.join(missing)}, too"


class VolumeClaim(ApiModel):
    """A PersistentVolumeClaim of a graph."""

    model_config = ConfigDict(json_schema_extra=validations(created_claims_are_complete))

    name: str
    """Name of the claim."""
    create: Bool | None = None
    """Creates the claim if it does not exist; needs size, storageClass and volumeAccessMode."""
    size: Quantity | None = None
    """Size of a claim to create."""
    storage_class: str | None = None
    """StorageClass of a claim to create."""
    volume_access_mode: str | None = None
    """Access mode of a claim to create, such as ReadWriteMany."""
