"""The `platform.scaler` section: budgets of GPUs, and how fast and how far commands may scale."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from dynamo_shared.runtime.settings.base import Duration, Section

Bound = Annotated[int, Field(ge=-1, le=2**31 - 1)]


class Direction(Section):
    """Scaling in one direction."""

    step: int = Field(0, ge=0, description="Replicas by which one decision changes a component at most; 0: any number.")
    cooldown: Duration = Field(0.0, le=86400, description="How long after a component was scaled it rests.")
    stabilization: Duration = Field(
        0.0,
        le=86400,
        description="How much history of requests counts: the one that changes least in this direction is taken.",
    )

    @model_validator(mode="after")
    def _steps_take_time(self) -> Self:
        if self.step and not self.cooldown:
            raise ValueError("step needs a cooldown: without one the next step would follow at once")
        return self


class ScalingLimits(Section):
    """How far and how fast a component may be scaled by commands; an annotation of its graph may say otherwise."""

    min: int = Field(1, ge=0, description="Replicas that a component keeps.")
    max: int = Field(0, ge=0, description="Replicas that a component has at most; 0: any number.")
    up: Direction = Direction()
    #: What was just scaled has not shown yet what it is good for; taking away too late costs less than too early.
    down: Direction = Direction(cooldown=60.0)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if 0 < self.max < self.min:
            raise ValueError(f"min is {self.min} and max {self.max}: max must be 0 or at least min")
        return self


class Budget(Section):
    """GPUs of all desired replicas of some graphs together."""

    name: str = Field(min_length=1, max_length=63, description="What messages and metrics call it.")
    namespaces: tuple[str, ...] = Field((), description="Namespaces whose graphs count; all where empty.")
    deployments: tuple[str, ...] = Field(
        (), description="Graphs that count, `name` or `namespace/name`; all of these namespaces where empty."
    )
    max_gpus: Bound = Field(-1, description="Ceiling, never exceeded by a decision; -1: none.")
    min_gpus: Bound = Field(-1, description="Floor, kept but for a transfer's tolerance of one replica; -1: none.")
    advisory: bool = Field(False, description="Report what would be refused, and refuse nothing for this budget.")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if 0 <= self.max_gpus < self.min_gpus:
            raise ValueError(f"minGpus ({self.min_gpus}) must not be above maxGpus ({self.max_gpus})")
        return self


class Scaler(Section):
    """Scale commands."""

    budgets: tuple[Budget, ...] = Field((), description="Budgets of GPUs; a graph may count in several.")
    managed: tuple[str, ...] = Field(
        (), description="Graphs that commands may scale, `namespace` or `namespace/name`; all where empty."
    )
    advisory: bool = Field(False, description="Compute and report every decision, and carry out none.")
    intent_lifetime: Duration = Field(
        360.0, gt=0, le=86400, description="How long a request is kept that a budget held or refused."
    )
    limits: ScalingLimits = ScalingLimits()
    cluster_trigger_authentications: tuple[str, ...] = Field(
        (),
        description="ClusterTriggerAuthentications of KEDA that graphs may name in triggers; none where empty. Who writes a "
        "graph names the server, too, that KEDA sends their secrets to.",
    )

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        names = [budget.name for budget in self.budgets]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"names of budgets must be unique; several are named {', '.join(twice)}")
        return self
