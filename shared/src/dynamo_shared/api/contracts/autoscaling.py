"""Autoscalers for the adapters of a graph, in an annotation, because v1beta1 has no field for them."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from dynamo_shared.api.contracts.base import ContractModel, Problem, Whole
from dynamo_shared.api.replica_limits import too_many

_OF_KEDA = ("pollingInterval", "cooldownPeriod", "idleReplicas", "fallback")


class ComponentAutoscaling(ContractModel):
    """Autoscaler of one component: a HorizontalPodAutoscaler, or with `triggers` a ScaledObject of KEDA."""

    min_replicas: Annotated[Whole, Field(ge=0)] = Field(1, validation_alias="minReplicas")
    """Fewest replicas; 0 with KEDA, or if the cluster lets HorizontalPodAutoscalers scale to zero."""
    max_replicas: Annotated[Whole, Field(ge=1)] = Field(validation_alias="maxReplicas")
    """Most replicas."""
    metrics: list[dict[str, Any]] = Field(default_factory=list)
    """Metrics of autoscaling/v2; by default CPU at 80 % of the pods' requests."""
    behavior: dict[str, Any] | None = None
    """Speed of scaling up and down, as in autoscaling/v2."""
    triggers: list[dict[str, Any]] = Field(default_factory=list)
    """Triggers of KEDA."""
    polling_interval: Annotated[Whole | None, Field(ge=1)] = Field(None, validation_alias="pollingInterval")
    """Seconds between two polls of the triggers by KEDA."""
    cooldown_period: Annotated[Whole | None, Field(ge=0)] = Field(None, validation_alias="cooldownPeriod")
    """Seconds without activity after which KEDA scales to zero."""
    idle_replicas: Annotated[Whole | None, Field(ge=0)] = Field(None, validation_alias="idleReplicas")
    """Replicas without activity, if fewer than `minReplicas`."""
    fallback: dict[str, Any] | None = None
    """KEDA's fallback while a trigger fails."""

    def problems(self) -> Iterator[Problem]:
        """Minimum and maximum are in order, and only one kind of autoscaler is set."""
        if problem := too_many(self.max_replicas):
            yield ("max_replicas",), problem
        if self.max_replicas < self.min_replicas:
            yield ("max_replicas",), f"must be at least minReplicas, which is {self.min_replicas}"
        if self.triggers and self.metrics:
            yield (
                ("triggers",),
                "cannot be combined with metrics: triggers create a ScaledObject of KEDA, metrics an HPA",
            )
        if not self.triggers:
            for name, value in zip(
                _OF_KEDA, (self.polling_interval, self.cooldown_period, self.idle_replicas, self.fallback), strict=True
            ):
                if value is not None:
                    yield (name,), "is a setting of KEDA, and needs triggers"
        if self.idle_replicas is not None and self.idle_replicas >= self.min_replicas:
            yield ("idle_replicas",), f"must be fewer than minReplicas, which is {self.min_replicas}"


class Autoscaling(ContractModel):
    """Autoscalers by component, each of which has `scalingAdapter: {}`."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, ComponentAutoscaling] = Field(init=False)

    @property
    def components(self) -> dict[str, ComponentAutoscaling]:
        """The requested autoscalers, by component."""
        return dict(self.__pydantic_extra__ or {})
