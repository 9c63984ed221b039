"""A service of a graph in v1alpha1: what DGD services and DCD specs have in common."""

from pydantic import ConfigDict, Field

from dynamo_shared.api.meta import EnvVar, ExtraPodSpec, Probe
from dynamo_shared.api.model import ApiModel, Bool, Int32, StringMap
from dynamo_shared.api.v1alpha1.experimental import ComponentCheckpoint, Failover, ServiceGpuMemory
from dynamo_shared.api.v1alpha1.exposure import IngressSpec, ScalingAdapter, ServiceAutoscaling
from dynamo_shared.api.v1alpha1.pods import (
    ExtraPodMetadata,
    FrontendSidecar,
    ServiceResources,
    SharedMemory,
    VolumeMount,
)
from dynamo_shared.api.v1beta1.component import (
    ROLES_BY_NAME,
    ComponentRole,
    ComponentTopologyConstraint,
    RuntimeVersionOverride,
)
from dynamo_shared.api.v1beta1.epp import ConfigMapKey, InlinePickerConfig
from dynamo_shared.api.v1beta1.provider_override import ProviderOverride


class Multinode(ApiModel):
    """Spreads each replica over several nodes."""

    # Required although it has a default, as the API server fills it in before it checks.
    model_config = ConfigDict(json_schema_extra={"required": ["nodeCount"]})

    node_count: Int32 = Field(default=2, ge=2)
    """Nodes of one replica."""


class ModelReference(ApiModel):
    """Model that a service serves."""

    name: str
    """Name of the base model, as DynamoModels refer to it."""
    revision: str | None = None
    """Revision of the model."""


class EppConfig(ApiModel):
    """Configuration of the endpoint picker: in a ConfigMap of the user's, or in place."""

    config_map_ref: ConfigMapKey | None = None
    """ConfigMap that holds the configuration."""
    config: InlinePickerConfig | None = None
    """The configuration itself; a ConfigMap is made of it."""


class ServiceSpec(ApiModel):
    """A service of a graph."""

    component_type: str | None = None
    """frontend, worker, prefill, decode, planner or epp: decides ports, probes and variables; others run as they are."""
    sub_component_type: str | None = None
    """prefill or decode, for a worker that does one of these only."""
    service_name: str | None = None
    """Name of the service in its graph; the key in spec.services decides."""
    runtime_version_override: RuntimeVersionOverride | None = None
    """Version of the Dynamo runtime in the service's image, such as 1.5.0, where its tag does not say it; the image stays."""
    replicas: Int32 | None = Field(default=None, ge=0)
    """Desired replicas; 1 where nothing else says so. A multi-node replica is a group of pods."""
    min_available: Int32 | None = Field(default=None, ge=1)
    """Replicas that Grove starts together, and replaces together where fewer are left; 1 by default. It cannot be changed."""
    multinode: Multinode | None = None
    """Spreads each replica over several nodes."""
    roles: list[ComponentRole] | None = Field(default=None, json_schema_extra={**ROLES_BY_NAME})
    """Leader and worker of a replica that spans nodes, where its author names them; both, or leave it out."""
    resources: ServiceResources | None = None
    """Resources of the engine's container."""
    envs: list[EnvVar] | None = None
    """Environment variables of the engine's container."""
    env_from_secret: str | None = None
    """Secret whose keys become environment variables of the engine's container."""
    liveness_probe: Probe | None = None
    """Liveness probe of the engine's container, instead of the platform's."""
    readiness_probe: Probe | None = None
    """Readiness probe of the engine's container, instead of the platform's."""
    volume_mounts: list[VolumeMount] | None = None
    """Volumes of the engine's container."""
    shared_memory: SharedMemory | None = None
    """Shared memory of the pods; 8Gi by default."""
    extra_pod_metadata: ExtraPodMetadata | None = None
    """Labels and annotations of the pods."""
    extra_pod_spec: ExtraPodSpec | None = None
    """Pod specification, merged over the platform's; the engine is mainContainer."""
    frontend_sidecar: FrontendSidecar | None = None
    """A frontend that runs next to the engine in each pod."""
    annotations: StringMap | None = None
    """Annotations of the service's objects; those of the pods are in extraPodMetadata."""
    labels: StringMap | None = None
    """Labels of the service's objects; those of the pods are in extraPodMetadata."""
    ingress: IngressSpec | None = None
    """How the service is reached from outside the cluster."""
    model_ref: ModelReference | None = None
    """Model that the service serves; makes it reachable for DynamoModels."""
    epp_config: EppConfig | None = None
    """Configuration of the endpoint picker; required with componentType epp."""
    scaling_adapter: ScalingAdapter | None = None
    """Whether an autoscaler or the planner owns the replicas, through an adapter."""
    autoscaling: ServiceAutoscaling | None = None
    """An autoscaler that writes to the service's adapter; ignored where it has none."""
    dynamo_namespace: str | None = None
    """Requested Dynamo namespace; ignored, as it follows from namespace and graph."""
    global_dynamo_namespace: Bool | None = None
    """Puts the service into the Dynamo namespace that all graphs share."""
    topology_constraint: ComponentTopologyConstraint | None = None
    """Keeps the service's pods close together; narrower than the graph's constraint."""
    provider_override: ProviderOverride | None = None
    """Topology constraint of the service's pods, in the words of Grove; only in a graph."""
    gpu_memory_service: ServiceGpuMemory | None = None
    """Weights in GPU memory that engines share. Experimental."""
    failover: Failover | None = None
    """Further engines, ready to take over; needs gpuMemoryService. Experimental."""
    checkpoint: ComponentCheckpoint | None = None
    """Start from a checkpoint of a loaded engine. Experimental."""
