"""DYN_DEPLOYMENT_CONFIG, the variable that a component of older graphs is configured with.

Two shapes share it, and a value may have both. The formalization proposal's says what a component is and how requests
reach it; the one that older graphs carry gives each component its settings under its name.
"""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from dynamo_shared.api.contracts.base import ContractModel, Whole
from dynamo_shared.api.model import Quantity


class RoutingMode(StrEnum):
    """How the frontend chooses a worker."""

    KV = "kv"
    ROUND_ROBIN = "round-robin"
    RANDOM = "random"


class Endpoint(ContractModel):
    """Something of the component that others call."""

    name: str = Field(min_length=1)
    """Name of the endpoint, such as `generate`."""
    address: str = Field(min_length=1)
    """Where it is: a URL, or host and port."""


class Routing(ContractModel):
    """How requests are spread over workers."""

    mode: RoutingMode = RoutingMode.ROUND_ROBIN
    """By what they have cached (kv), in turn, or at random."""


class Resources(ContractModel):
    """What one replica is given; both its requests and its limits."""

    cpu: Quantity | None = None
    """CPU, such as `10` or `500m`."""
    memory: Quantity | None = None
    """Memory, such as `20Gi`."""
    gpu: Quantity | None = None
    """GPUs, as nvidia.com/gpu."""
    custom: dict[str, Quantity] = Field(default_factory=dict)
    """Other resources by their names."""


class ServiceArgs(ContractModel):
    """How a component is run."""

    workers: Annotated[Whole | None, Field(ge=0)] = None
    """Replicas, where the graph names none."""
    resources: Resources | None = None
    """What each of them is given."""


class ComponentSettings(ContractModel):
    """Settings of one component; keys besides these are the component's own."""

    __pydantic_extra__: dict[str, Any] = Field(init=False)

    service_args: ServiceArgs | None = Field(default=None, validation_alias="ServiceArgs")
    """How it is run: read by the control plane."""
    port: Annotated[Whole | None, Field(ge=1, le=65535)] = None
    """Port of a frontend; the control plane writes 8000 here, which probes and Services count on."""


class DeploymentConfig(ContractModel):
    """Value of DYN_DEPLOYMENT_CONFIG, an object as JSON or YAML text. Keys besides these are names of components."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, ComponentSettings] = Field(init=False)

    namespace: str | None = Field(default=None, min_length=1)
    """Dynamo namespace of the component. The control plane writes it."""
    component: str | None = Field(default=None, min_length=1)
    """Name of the component. The control plane writes it."""
    endpoints: list[Endpoint] = Field(default_factory=list)
    """What of it others call. The control plane writes a frontend's where none is given."""
    routing: Routing | None = None
    """How requests reach it: the router mode of frontends that name none."""

    @property
    def components(self) -> dict[str, ComponentSettings]:
        """Settings by component."""
        return dict(self.__pydantic_extra__ or {})
