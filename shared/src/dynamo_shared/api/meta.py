"""Types of Kubernetes that the platform's types embed: metadata, conditions, environment variables, pod templates."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict, Field, WithJsonSchema, with_config
from typing_extensions import TypedDict

from dynamo_shared.api.model import ApiModel, Bool, Int64, StringMap, Timestamp, as_written, embedded, is_empty


class OwnerReference(ApiModel):
    """Object that this one goes with."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: Bool | None = None
    block_owner_deletion: Bool | None = None


class ObjectMeta(ApiModel):
    """Metadata of an object."""

    name: str = Field(default="", exclude_if=is_empty)
    generate_name: str | None = None
    namespace: str = Field(default="", exclude_if=is_empty)
    labels: StringMap = Field(default_factory=dict, exclude_if=is_empty)
    annotations: StringMap = Field(default_factory=dict, exclude_if=is_empty)
    uid: str = Field(default="", exclude_if=is_empty)
    resource_version: str = Field(default="", exclude_if=is_empty)
    generation: Int64 = Field(default=0, exclude_if=is_empty)
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    deletion_grace_period_seconds: Int64 | None = None
    finalizers: list[str] = Field(default_factory=list, exclude_if=is_empty)
    owner_references: list[OwnerReference] = Field(default_factory=list, exclude_if=is_empty)
    managed_fields: list[Any] | None = None
    self_link: str | None = None


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class StatusCondition(ApiModel):
    """One aspect of an object's state."""

    type: str = Field(max_length=316)
    """What the condition is about, in CamelCase."""
    status: ConditionStatus
    """Whether it holds: True, False or Unknown."""
    observed_generation: Int64 | None = Field(default=None, ge=0)
    """metadata.generation that the condition was observed for."""
    last_transition_time: Timestamp
    """When status changed last."""
    reason: str = Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    """Why status changed last, as one CamelCase word for programs."""
    message: str = Field(max_length=32768)
    """Why status changed last, for people."""


# The checked fields of embedded types. Other fields are ignored, because newer releases of Kubernetes may add some.
_AS_IS = ConfigDict(extra="ignore")


@with_config(_AS_IS)
class _AnyShape(TypedDict):
    pass


@with_config(_AS_IS)
class _NamedShape(TypedDict):
    name: Annotated[str, Field(min_length=1)]


@with_config(_AS_IS)
class _MainContainerShape(TypedDict, total=False):
    image: str
    command: list[str]
    args: list[str]
    env: list[_NamedShape]
    ports: list[dict[str, Any]]
    resources: dict[str, Any]
    volumeMounts: list[dict[str, Any]]


@with_config(_AS_IS)
class _ContainerShape(_MainContainerShape, _NamedShape):
    pass


@with_config(_AS_IS)
class _PodMetaShape(TypedDict, total=False):
    labels: StringMap
    annotations: StringMap


@with_config(_AS_IS)
class _PodSpecShape(TypedDict, total=False):
    containers: list[_ContainerShape]
    initContainers: list[_ContainerShape]
    volumes: list[_NamedShape]
    imagePullSecrets: list[dict[str, Any]]
    securityContext: dict[str, Any]
    serviceAccountName: str


@with_config(_AS_IS)
class _ExtraPodSpecShape(_PodSpecShape, total=False):
    mainContainer: _MainContainerShape


@with_config(_AS_IS)
class _PodTemplateShape(TypedDict, total=False):
    metadata: _PodMetaShape
    spec: _PodSpecShape


if TYPE_CHECKING:
    PodTemplate = dict[str, Any]
    WholePodTemplate = dict[str, Any]
    ExtraPodSpec = dict[str, Any]
    EnvVar = dict[str, Any]
    Probe = dict[str, Any]
    ResourceClaim = dict[str, Any]
    NamedResourceClaim = dict[str, Any]
    Toleration = dict[str, Any]
    MetricSpec = dict[str, Any]
    AutoscalerBehavior = dict[str, Any]
    JobSpec = dict[str, Any]
else:

    def _embedded(shape: type[Any], name: str, *optional: str, **more: Any) -> Any:
        # Only the fields that rendering needs are checked, without nulls; the API server checks the rest.
        schema = {**embedded(name, *optional), **more}
        return Annotated[as_written(shape), WithJsonSchema(schema, mode="validation")]

    PodTemplate = _embedded(_PodTemplateShape, "io.k8s.api.core.v1.PodTemplateSpec", "spec.containers")
    # Not merged with another template, so it must be complete.
    WholePodTemplate = _embedded(_PodTemplateShape, "io.k8s.api.core.v1.PodTemplateSpec")
    ExtraPodSpec = _embedded(
        _ExtraPodSpecShape,
        "io.k8s.api.core.v1.PodSpec",
        "containers",
        properties={
            "mainContainer": {
                **embedded("io.k8s.api.core.v1.Container", "name"),
                "description": "Container of the engine, merged over what the platform makes of the other fields.",
            }
        },
    )
    EnvVar = _embedded(_NamedShape, "io.k8s.api.core.v1.EnvVar")
    Probe = _embedded(_AnyShape, "io.k8s.api.core.v1.Probe")
    ResourceClaim = _embedded(_NamedShape, "io.k8s.api.core.v1.ResourceClaim")
    # The API server must know the key of a list of type map.
    NamedResourceClaim = _embedded(
        _NamedShape,
        "io.k8s.api.core.v1.ResourceClaim",
        properties={"name": {"type": "string", "description": "Name of a claim of the pod."}},
        required=["name"],
    )
    Toleration = _embedded(_AnyShape, "io.k8s.api.core.v1.Toleration")
    MetricSpec = _embedded(_AnyShape, "io.k8s.api.autoscaling.v2.MetricSpec")
    AutoscalerBehavior = _embedded(_AnyShape, "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerBehavior")
    # The first container is merged into the profiler's, whatever its name, so it needs no name.
    JobSpec = _embedded(
        _AnyShape,
        "io.k8s.api.batch.v1.JobSpec",
        "template",
        "template.spec.containers",
        "template.spec.containers.name",
    )
