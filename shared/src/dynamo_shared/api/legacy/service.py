"""A service of the legacy kinds."""

from pydantic import Field

from dynamo_shared.api.meta import AutoscalerBehavior, EnvVar, ExtraPodSpec, MetricSpec, Probe, StatusCondition
from dynamo_shared.api.model import ApiModel, Bool, Int, Int32, Quantity, StringMap
from dynamo_shared.api.v1alpha1.exposure import IngressSpec
from dynamo_shared.api.v1alpha1.pods import ExtraPodMetadata, ServiceResources


class ClaimToMount(ApiModel):
    """A PersistentVolumeClaim of a service."""

    name: str | None = None
    """Name of the claim."""
    create: Bool | None = None
    """Creates the claim if it does not exist."""
    mount_point: str | None = None
    """Path in the container."""
    size: Quantity | None = None
    """Size of a claim to create."""
    storage_class: str | None = None
    """StorageClass of a claim to create."""
    volume_access_mode: str | None = None
    """Access mode of a claim to create."""


class LegacyAutoscaling(ApiModel):
    """Rules of an autoscaler."""

    enabled: Bool | None = None
    """Creates a HorizontalPodAutoscaler."""
    min_replicas: Int | None = None
    """Fewest replicas."""
    max_replicas: Int | None = None
    """Most replicas."""
    behavior: AutoscalerBehavior | None = None
    """Speed of scaling up and down."""
    metrics: list[MetricSpec] | None = None
    """Metrics that determine the number of replicas."""


class ExternalService(ApiModel):
    """A service that another one depends on."""

    deployment_selector_key: str | None = None
    """Key of the selector of the service: dynamo."""
    deployment_selector_value: str | None = None
    """Name and Dynamo namespace of the service, such as PrefillWorker/dynamo."""


class LegacyServiceSpec(ApiModel):
    """Pods of a service, and its exposure."""

    annotations: StringMap | None = None
    """Annotations of the pods."""
    labels: StringMap | None = None
    """Labels of the Deployment and its pods."""
    resources: ServiceResources | None = None
    """Resources of the container."""
    autoscaling: LegacyAutoscaling | None = None
    """Rules of an autoscaler."""
    env_from_secret: str | None = None
    """Secret whose keys become environment variables."""
    pvc: ClaimToMount | None = None
    """Volume of the service."""
    ingress: IngressSpec | None = None
    """Exposes the service outside the cluster."""
    extra_pod_metadata: ExtraPodMetadata | None = None
    """Further labels and annotations of the pods."""
    extra_pod_spec: ExtraPodSpec | None = None
    """Pod specification, merged over the generated one."""
    liveness_probe: Probe | None = None
    """Liveness probe of the container."""
    readiness_probe: Probe | None = None
    """Readiness probe of the container."""
    external_services: dict[str, ExternalService] | None = None
    """Services that this one depends on, by name."""


class ServiceOverride(LegacyServiceSpec):
    """Changes of a deployment to a service of its artifact."""

    replicas: Int32 | None = Field(default=None, ge=0)
    """Desired replicas."""
    envs: list[EnvVar] | None = None
    """Environment variables of the service; they take precedence over those of the deployment."""


class LegacyStatus(ApiModel):
    """State of an object."""

    conditions: list[StatusCondition] | None = None
    """Aspects of the state: readiness, progress, failure."""
