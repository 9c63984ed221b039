"""A component of a graph: the fields that components of DGDs and specs of DCDs share."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from dynamo_shared.api.component_names import LONGEST, NAME_PATTERN
from dynamo_shared.api.meta import PodTemplate
from dynamo_shared.api.model import ApiModel, Bool, Int32, Quantity
from dynamo_shared.api.rules import Violations, rule, validations
from dynamo_shared.api.runtime_version import PATTERN
from dynamo_shared.api.v1beta1.enums import ComponentType
from dynamo_shared.api.v1beta1.epp import EppConfig
from dynamo_shared.api.v1beta1.experimental import Experimental
from dynamo_shared.api.v1beta1.provider_override import ProviderOverride

ComponentName = Annotated[str, Field(min_length=1, max_length=LONGEST, pattern=NAME_PATTERN)]
RuntimeVersionOverride = Annotated[str, Field(pattern=PATTERN)]
PackDomain = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")]


class Multinode(ApiModel):
    """Runs each replica on several nodes."""

    node_count: Int32 = Field(default=2, ge=2)
    """Nodes of one replica."""


class ComponentRole(ApiModel):
    """A part of each replica that spans nodes: its leader, or its workers."""

    name: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
    """leader or worker."""
    replicas: Int32 | None = Field(default=None, ge=1)
    """Pods of this role in one replica: 1 for the leader, nodeCount - 1 for the workers. Set by default."""
    pod_template: PodTemplate | None = None
    """Pods of this role, instead of podTemplate of the component; their command runs unchanged."""
    provider_override: ProviderOverride | None = None
    """Topology constraint of this role's pods, in Grove's own fields."""


#: A role is identified by its name.
ROLES_BY_NAME: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}


class ModelReference(ApiModel):
    """Model that a component serves."""

    name: str = Field(min_length=1)
    """Name of the base model, as DynamoModels refer to it."""
    revision: str | None = None
    """Revision of the model."""


class CompilationCacheConfig(ApiModel):
    """Volume that caches compiled kernels between starts."""

    pvc_name: str = Field(min_length=1)
    """PersistentVolumeClaim in the same namespace."""
    mount_path: str | None = None
    """Path at which it is mounted; for vLLM /root/.cache/vllm by default."""
    sub_path: str | None = None
    """Directory of the volume to mount, such as one for each runtime version; the whole volume by default."""


class ScalingAdapter(ApiModel):
    """If present, a DynamoGraphDeploymentScalingAdapter owns the replicas, and autoscalers can write to it."""


class ComponentTopologyConstraint(ApiModel):
    """Places the pods of a component close together."""

    pack_domain: PackDomain
    """Topology domain that the pods must share, such as rack."""


@rule("!has(self.eppConfig) || (has(self.type) && self.type == 'epp')", "eppConfig needs type epp")
def epp_config_needs_epp(value: dict[str, Any]) -> Violations:
    """Only an endpoint picker has this configuration."""
    if "eppConfig" in value and value.get("type") != "epp":
        yield ("eppConfig",), f"needs type epp; type is {value.get('type') or 'not set'}"


class ComponentSpec(ApiModel):
    """All fields of a component except its name."""

    model_config = ConfigDict(json_schema_extra=validations(epp_config_needs_epp))

    type: ComponentType | None = None
    """frontend, worker, prefill, decode, planner or epp: determines ports, probes and environment variables."""
    runtime_version_override: RuntimeVersionOverride | None = None
    """Version of the Dynamo runtime in the image of main, such as 1.5.0, if its tag does not state it. Keeps the image."""
    replicas: Int32 | None = Field(default=None, ge=0)
    """Desired replicas; 1 if nothing else sets them. A multi-node replica is a group of pods."""
    min_available: Int32 | None = Field(default=None, ge=1)
    """Replicas that Grove starts together, and replaces together if fewer are left; 1 by default. It is immutable."""
    pod_template: PodTemplate | None = None
    """Pod template, merged over the defaults of type and backend; the engine is the container main."""
    multinode: Multinode | None = None
    """Runs each replica on several nodes."""
    roles: list[ComponentRole] | None = Field(default=None, json_schema_extra={**ROLES_BY_NAME})
    """Leader and worker of a replica that spans nodes, if the user describes them; either both or none."""
    model_ref: ModelReference | None = None
    """Model that the component serves; DynamoModels select the component by it."""
    shared_memory_size: Quantity | None = None
    """Size of /dev/shm; 8Gi by default, 0 for none."""
    compilation_cache: CompilationCacheConfig | None = None
    """Volume that caches compiled kernels."""
    scaling_adapter: ScalingAdapter | None = None
    """Set to {} so that an autoscaler or the planner owns the replicas."""
    frontend_sidecar: str | None = None
    """Container of the pod template that runs as a frontend next to the engine."""
    epp_config: EppConfig | None = None
    """Configuration of the endpoint picker; only with type epp."""
    global_dynamo_namespace: Bool | None = None
    """Puts the component into the Dynamo namespace that all graphs share."""
    topology_constraint: ComponentTopologyConstraint | None = None
    """Places the component's pods close together; not wider than the graph's constraint."""
    provider_override: ProviderOverride | None = None
    """Topology constraint of the component's pods, in Grove's own fields; only in a graph."""
    experimental: Experimental | None = None
    """Features that may change without notice."""


class Component(ComponentSpec):
    """A component of a graph."""

    name: ComponentName
    """Name; unique in the graph, ignoring case."""
