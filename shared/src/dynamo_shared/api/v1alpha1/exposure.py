"""Parts of a v1alpha1 service for its exposure and scaling."""

from dynamo_shared.api.meta import AutoscalerBehavior, MetricSpec
from dynamo_shared.api.model import ApiModel, Bool, Int, StringMap


class IngressTls(ApiModel):
    """TLS of an ingress."""

    secret_name: str | None = None
    """Secret with certificate and key."""


class IngressSpec(ApiModel):
    """Exposes a service outside the cluster."""

    enabled: Bool | None = None
    """Creates an Ingress, or a VirtualService; needs host."""
    host: str | None = None
    """First label of the host name, between hostPrefix and hostSuffix."""
    host_prefix: str | None = None
    """Text before host."""
    host_suffix: str | None = None
    """Domain after host; the platform's by default."""
    ingress_controller_class_name: str | None = None
    """IngressClass; the platform's by default."""
    annotations: StringMap | None = None
    """Annotations of the Ingress."""
    labels: StringMap | None = None
    """Labels of the Ingress."""
    tls: IngressTls | None = None
    """TLS of the host."""
    use_virtual_service: Bool | None = None
    """Creates an Istio VirtualService; also an Ingress only if ingressControllerClassName is set."""
    virtual_service_gateway: str | None = None
    """Istio Gateway of the VirtualService."""


class ServiceAutoscaling(ApiModel):
    """A HorizontalPodAutoscaler for the adapter of a service; ignored without an adapter."""

    enabled: Bool | None = None
    """Creates the autoscaler."""
    min_replicas: Int | None = None
    """Fewest replicas; 1 by default."""
    max_replicas: Int | None = None
    """Most replicas; required if enabled."""
    behavior: AutoscalerBehavior | None = None
    """Speed of scaling up and down."""
    metrics: list[MetricSpec] | None = None
    """Metrics; by default CPU at 80 % of the pods' requests."""


class ScalingAdapter(ApiModel):
    """Whether an adapter owns the replicas."""

    enabled: Bool = False
    """A DynamoGraphDeploymentScalingAdapter owns the replicas, and autoscalers can write to it."""
