"""A service of a graph in v1alpha1: the fields that services of DGDs and specs of DCDs share."""

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
    """Runs each replica on several nodes."""

    # Required although it has a default: the API server sets it before it validates.
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
    """Configuration of the endpoint picker: in a ConfigMap of the user, or inline."""

    config_map_ref: ConfigMapKey | None = None
    """ConfigMap with the configuration."""
    config: InlinePickerConfig | None = None
    """The inline configuration; the platform creates a ConfigMap from it."""


class ServiceSpec(ApiModel):
    """A service of a graph."""

    component_type: str | None = None
    """frontend, worker, prefill, decode, planner or epp: sets ports, probes and variables; others run unchanged."""
    sub_component_type: str | None = None
    """prefill or decode, for a worker that does only one of them."""
    service_name: str | None = None
    """Name of the service in its graph; the key in spec.services takes precedence."""
    runtime_version_override: RuntimeVersionOverride | None = None
    """Version of the Dynamo runtime in the service's image, such as 1.5.0, if its tag does not state it."""
    replicas: Int32 | None = Field(default=None, ge=0)
    """Desired replicas; 1 if nothing else sets them. A multi-node replica is a group of pods."""
    min_available: Int32 | None = Field(default=None, ge=1)
    """Replicas that Grove starts together, and replaces together if fewer are left; 1 by default. It is immutable."""
    multinode: Multinode | None = None
    """Runs each replica on several nodes."""
    roles: list[ComponentRole] | None = Field(default=None, json_schema_extra={**ROLES_BY_NAME})
    """Leader and worker of a replica that spans nodes, if the user describes them; either both or none."""
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
    """Annotations of the service's objects; extraPodMetadata has those of the pods."""
    labels: StringMap | None = None
    """Labels of the service's objects; extraPodMetadata has those of the pods."""
    ingress: IngressSpec | None = None
    """Exposes the service outside the cluster."""
    model_ref: ModelReference | None = None
    """Model that the service serves; DynamoModels select the service by it."""
    epp_config: EppConfig | None = None
    """Configuration of the endpoint picker; required with componentType epp."""
    scaling_adapter: ScalingAdapter | None = None
    """Whether an autoscaler or the planner owns the replicas, through an adapter."""
    autoscaling: ServiceAutoscaling | None = None
    """An autoscaler that writes to the service's adapter; ignored without an adapter."""
    dynamo_namespace: str | None = None
    """Requested Dynamo namespace; ignored, because it follows from the namespace and the graph."""
    global_dynamo_namespace: Bool | None = None
    """Puts the service into the Dynamo namespace that all graphs share."""
    topology_constraint: ComponentTopologyConstraint | None = None
    """Places the service's pods close together; not wider than the graph's constraint."""
    provider_override: ProviderOverride | None = None
    """Topology constraint of the service's pods, in Grove's own fields; only in a graph."""
    gpu_memory_service: ServiceGpuMemory | None = None
    """Weights in GPU memory that engines share. Experimental."""
    failover: Failover | None = None
    """Further engines, ready to take over; needs gpuMemoryService. Experimental."""
    checkpoint: ComponentCheckpoint | None = None
    """Start from a checkpoint of a loaded engine. Experimental."""
