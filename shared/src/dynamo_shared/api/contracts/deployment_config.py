"""DYN_DEPLOYMENT_CONFIG, the variable that configures a component of older graphs.

Two formats share the variable, and a value may use both. The formalization proposal describes a component and the
routing of its requests; older graphs set each component's settings under its name.
"""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from dynamo_shared.api.contracts.base import ContractModel, Whole
from dynamo_shared.api.model import Quantity


class RoutingMode(StrEnum):
    """How the frontend selects a worker."""

    KV = "kv"
    ROUND_ROBIN = "round-robin"
    RANDOM = "random"


class Endpoint(ContractModel):
    """An endpoint of the component that others call."""

    name: str = Field(min_length=1)
    """Name of the endpoint, such as `generate`."""
    address: str = Field(min_length=1)
    """Its address: a URL, or host and port."""


class Routing(ContractModel):
    """How requests are distributed over workers."""

    mode: RoutingMode = RoutingMode.ROUND_ROBIN
    """By cached prompts (kv), in turn, or at random."""


class Resources(ContractModel):
    """Resources of one replica; both its requests and its limits."""

    cpu: Quantity | None = None
    """CPU, such as `10` or `500m`."""
    memory: Quantity | None = None
    """Memory, such as `20Gi`."""
    gpu: Quantity | None = None
    """GPUs, as nvidia.com/gpu."""
    custom: dict[str, Quantity] = Field(default_factory=dict)
    """Other resources by their names."""


class ServiceArgs(ContractModel):
    """How a component runs."""

    workers: Annotated[Whole | None, Field(ge=0)] = None
    """Replicas, if the graph sets none."""
    resources: Resources | None = None
    """Resources of each replica."""


class ComponentSettings(ContractModel):
    """Settings of one component; other keys are the component's own."""

    __pydantic_extra__: dict[str, Any] = Field(init=False)

    service_args: ServiceArgs | None = Field(default=None, validation_alias="ServiceArgs")
    """How the component runs; the control plane reads it."""
    port: Annotated[Whole | None, Field(ge=1, le=65535)] = None
    """Port of a frontend; the control plane writes 8000, which probes and Services use."""


class DeploymentConfig(ContractModel):
    """Value of DYN_DEPLOYMENT_CONFIG, an object as JSON or YAML text. Other keys are names of components."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, ComponentSettings] = Field(init=False)

    namespace: str | None = Field(default=None, min_length=1)
    """Dynamo namespace of the component. The control plane writes it."""
    component: str | None = Field(default=None, min_length=1)
    """Name of the component. The control plane writes it."""
    endpoints: list[Endpoint] = Field(default_factory=list)
    """Endpoints that others call. The control plane writes a frontend's endpoints if none are given."""
    routing: Routing | None = None
    """Routing of its requests: the router mode of frontends that set none."""

    @property
    def components(self) -> dict[str, ComponentSettings]:
        """Settings by component."""
        return dict(self.__pydantic_extra__ or {})
