"""Parts of a v1alpha1 service that say how it is reached and scaled."""

from dynamo_shared.api.meta import AutoscalerBehavior, MetricSpec
from dynamo_shared.api.model import ApiModel, Bool, Int, StringMap


class IngressTls(ApiModel):
    """TLS of an ingress."""

    secret_name: str | None = None
    """Secret with certificate and key."""


class IngressSpec(ApiModel):
    """How a service is reached from outside the cluster."""

    enabled: Bool | None = None
    """Makes an Ingress, or a VirtualService; needs host."""
    host: str | None = None
    """First label of the host name; hostPrefix and hostSuffix go around it."""
    host_prefix: str | None = None
    """Text before host."""
    host_suffix: str | None = None
    """Domain behind host; the platform's by default."""
    ingress_controller_class_name: str | None = None
    """IngressClass; the platform's by default."""
    annotations: StringMap | None = None
    """Annotations of the Ingress."""
    labels: StringMap | None = None
    """Labels of the Ingress."""
    tls: IngressTls | None = None
    """TLS of the host."""
    use_virtual_service: Bool | None = None
    """Makes an Istio VirtualService, and an Ingress next to it only of a class that is named here."""
    virtual_service_gateway: str | None = None
    """Istio Gateway of the VirtualService."""


class ServiceAutoscaling(ApiModel):
    """A HorizontalPodAutoscaler, next to the adapter of a service that has one; of others it is ignored."""

    enabled: Bool | None = None
    """Makes it."""
    min_replicas: Int | None = None
    """Fewest replicas; 1 by default."""
    max_replicas: Int | None = None
    """Most replicas; must be given where it is enabled."""
    behavior: AutoscalerBehavior | None = None
    """How fast to go up and down."""
    metrics: list[MetricSpec] | None = None
    """What to go by; CPU at 80 % of what the pods request by default."""


class ScalingAdapter(ApiModel):
    """Whether an adapter owns the replicas."""

    enabled: Bool = False
    """Hands the replicas to a DynamoGraphDeploymentScalingAdapter, and through it to autoscalers."""
