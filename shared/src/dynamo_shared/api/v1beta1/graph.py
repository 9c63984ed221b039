"""DynamoGraphDeployment: a graph of components that serves models."""

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from dynamo_shared.api.meta import EnvVar, ObjectMeta
from dynamo_shared.api.model import ApiModel, StringMap, is_empty, parse
from dynamo_shared.api.rules import Violations, rule, validations
from dynamo_shared.api.v1beta1.component import Component, PackDomain
from dynamo_shared.api.v1beta1.enums import BackendFramework, RestartStrategyType
from dynamo_shared.api.v1beta1.kv_transfer import GraphExperimental
from dynamo_shared.api.v1beta1.provider_override import ProviderOverride
from dynamo_shared.api.v1beta1.status import GraphStatus

MAX_COMPONENTS = 25


@rule("self.filter(c, has(c.type) && c.type == 'epp').size() <= 1", "a graph has at most one component of type epp")
def at_most_one_epp(value: list[Any]) -> Violations:
    """A graph has one pool of workers, so it has one picker."""
    pickers = [i for i, each in enumerate(value) if isinstance(each, dict) and each.get("type") == "epp"]
    for index in pickers[1:]:
        yield (index, "type"), f"a graph has at most one component of type epp; [{pickers[0]}] is another one"


@rule(
    "self.all(c1, !has(c1.name) || self.filter(c2, has(c2.name) && c2.name.lowerAscii() == c1.name.lowerAscii()).size() == 1)",
    "component names must be unique, without regard to case",
)
def names_are_unique(value: list[Any]) -> Violations:
    """Names of child objects are lower case, so two names that differ only in case would conflict."""
    known: dict[str, int] = {}
    for index, each in enumerate(value):
        name = each.get("name") if isinstance(each, dict) else None
        if isinstance(name, str):
            first = known.setdefault(name.lower(), index)
            if first != index:
                yield (index, "name"), f"{name!r} is already the name of [{first}], if case is ignored"


class RestartStrategy(ApiModel):
    """Order of a restart."""

    type: RestartStrategyType = RestartStrategyType.SEQUENTIAL
    """Sequential restarts one component after the other, Parallel all at once."""
    order: list[str] | None = None
    """Every component once, first to last; alphabetical by default. Only with Sequential."""


class Restart(ApiModel):
    """A restart of the graph's pods."""

    id: str = Field(min_length=1)
    """Any text; a new value restarts the pods."""
    strategy: RestartStrategy | None = None
    """Order of the restart."""


class GraphTopologyConstraint(ApiModel):
    """Places the pods of a graph close together."""

    cluster_topology_name: str = Field(min_length=1)
    """ClusterTopologyBinding that defines the domains; before Grove 0.1.0-alpha.11 the ClusterTopology."""
    pack_domain: PackDomain | None = None
    """Topology domain that all pods must share; if absent, each component sets its own."""


class DynamoGraphDeploymentSpec(ApiModel):
    """Desired graph."""

    backend_framework: BackendFramework | None = None
    """Inference engine of the workers; by default detected from their commands. It cannot be changed later."""
    components: Annotated[list[Component], Field(max_length=MAX_COMPONENTS)] = Field(
        default_factory=list,
        exclude_if=is_empty,
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            **validations(at_most_one_epp, names_are_unique),
        },
    )
    """Components of the graph, at most 25."""
    env: list[EnvVar] = Field(default_factory=list, exclude_if=is_empty)
    """Environment variables for main containers of all components and frontend sidecars; their own take precedence."""
    labels: StringMap = Field(default_factory=dict, exclude_if=is_empty)
    """Labels for the pods of all components; those of a pod template take precedence."""
    annotations: StringMap = Field(default_factory=dict, exclude_if=is_empty)
    """Annotations for the pods of all components; those of a pod template take precedence."""
    priority_class_name: str | None = None
    """PriorityClass of the graph's pods, unless a pod template sets another; with Grove, of its gangs of pods."""
    restart: Restart | None = None
    """Restarts the pods when its id changes."""
    topology_constraint: GraphTopologyConstraint | None = None
    """Places the graph's pods close together."""
    provider_override: ProviderOverride | None = None
    """Topology constraint of the graph's pods, in Grove's own fields."""
    experimental: GraphExperimental | None = None
    """Features of the graph that may change without notice."""


class DynamoGraphDeployment(ApiModel):
    """A graph of components that serves models: frontends, workers, planners, endpoint pickers."""

    api_version: Literal["nvidia.com/v1beta1"] = "nvidia.com/v1beta1"
    kind: Literal["DynamoGraphDeployment"] = "DynamoGraphDeployment"
    metadata: ObjectMeta
    spec: DynamoGraphDeploymentSpec = Field(default_factory=DynamoGraphDeploymentSpec)
    """Desired graph."""
    status: GraphStatus | None = None
    """State of the graph, written by the platform."""


parse_graph = partial(parse, DynamoGraphDeployment)
