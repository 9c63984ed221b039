"""DynamoGraphDeployment in v1alpha1: services in a map, pods in many fields."""

from typing import Annotated, Literal

from pydantic import Field

from dynamo_shared.api.meta import EnvVar, ObjectMeta
from dynamo_shared.api.model import ApiModel, StringMap
from dynamo_shared.api.v1alpha1.component import ServiceSpec
from dynamo_shared.api.v1alpha1.pods import VolumeClaim
from dynamo_shared.api.v1alpha1.status import GraphStatus
from dynamo_shared.api.v1beta1 import BackendFramework
from dynamo_shared.api.v1beta1.component import PackDomain
from dynamo_shared.api.v1beta1.graph import MAX_COMPONENTS, Restart
from dynamo_shared.api.v1beta1.kv_transfer import GraphExperimental
from dynamo_shared.api.v1beta1.provider_override import ProviderOverride

MAX_CLAIMS = 100


class GraphTopologyConstraint(ApiModel):
    """Places the pods of a graph close together."""

    topology_profile: str = Field(min_length=1)
    """ClusterTopologyBinding that defines the domains; before Grove 0.1.0-alpha.11 the ClusterTopology."""
    pack_domain: PackDomain | None = None
    """Topology domain that all pods must share; if absent, each service sets its own."""


class DynamoGraphDeploymentSpec(ApiModel):
    """Desired graph."""

    backend_framework: BackendFramework | None = None
    """Inference engine of the workers; by default detected from their commands. It cannot be changed later."""
    services: Annotated[dict[str, ServiceSpec], Field(max_length=MAX_COMPONENTS)] | None = None
    """Services of the graph by name, at most 25. Their names cannot be changed later."""
    envs: list[EnvVar] | None = None
    """Environment variables for engine containers of all services and frontend sidecars; their own take precedence."""
    labels: StringMap | None = None
    """Labels for the pods of all services; a service's own take precedence."""
    annotations: StringMap | None = None
    """Annotations for the pods of all services; a service's own take precedence."""
    priority_class_name: str | None = None
    """PriorityClass of the graph's pods, unless a pod template sets another; with Grove, of its gangs of pods."""
    pvcs: Annotated[list[VolumeClaim], Field(max_length=MAX_CLAIMS)] | None = None
    """PersistentVolumeClaims of the graph, at most 100; volumeMounts of services refer to them."""
    restart: Restart | None = None
    """Restarts the pods when its id changes."""
    topology_constraint: GraphTopologyConstraint | None = None
    """Places the graph's pods close together."""
    provider_override: ProviderOverride | None = None
    """Topology constraint of the graph's pods, in Grove's own fields."""
    experimental: GraphExperimental | None = None
    """Features of the graph that may change without notice."""


class DynamoGraphDeployment(ApiModel):
    """A graph of services that serves models: frontends, workers, planners, endpoint pickers."""

    api_version: Literal["nvidia.com/v1alpha1"] = "nvidia.com/v1alpha1"
    kind: Literal["DynamoGraphDeployment"] = "DynamoGraphDeployment"
    metadata: ObjectMeta
    spec: DynamoGraphDeploymentSpec = Field(default_factory=DynamoGraphDeploymentSpec)
    """Desired graph."""
    status: GraphStatus | None = None
    """State of the graph, written by the platform."""
