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
    """Keeps the pods of a graph close together."""

    topology_profile: str = Field(min_length=1)
    """ClusterTopologyBinding that defines the domains; with Grove before 0.1.0-alpha.11 ClusterTopology."""
    pack_domain: PackDomain | None = None
    """Topology domain that all pods must share; absent, each service names its own."""


class DynamoGraphDeploymentSpec(ApiModel):
    """Desired graph."""

    backend_framework: BackendFramework | None = None
    """Inference engine of the workers; detected from their commands where absent. It cannot be changed later."""
    services: Annotated[dict[str, ServiceSpec], Field(max_length=MAX_COMPONENTS)] | None = None
    """Services of the graph by name, at most 25. Their names cannot be changed later."""
    envs: list[EnvVar] | None = None
    """Environment variables for the engine's containers of all services and for frontend sidecars; their own win."""
    labels: StringMap | None = None
    """Labels for the pods of all services; a service's own win."""
    annotations: StringMap | None = None
    """Annotations for the pods of all services; a service's own win."""
    priority_class_name: str | None = None
    """PriorityClass of the graph's pods; a pod template's own wins. With Grove, of the gangs that its pods are placed in."""
    pvcs: Annotated[list[VolumeClaim], Field(max_length=MAX_CLAIMS)] | None = None
    """PersistentVolumeClaims of the graph, at most 100; volumeMounts of services refer to them."""
    restart: Restart | None = None
    """Restarts the pods when its id changes."""
    topology_constraint: GraphTopologyConstraint | None = None
    """Keeps the graph's pods close together."""
    provider_override: ProviderOverride | None = None
    """Topology constraint of the graph's pods, in the words of Grove."""
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
