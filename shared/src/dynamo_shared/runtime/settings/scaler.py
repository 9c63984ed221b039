"""The `platform.scaler` section: GPU budgets, and limits of scale commands."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from dynamo_shared.runtime.settings.base import Duration, Section

Bound = Annotated[int, Field(ge=-1, le=2**31 - 1)]


class Direction(Section):
    """Limits of scaling in one direction."""

    step: int = Field(0, ge=0, description="Maximum replicas that one decision adds or removes; 0: no limit.")
    cooldown: Duration = Field(0.0, le=86400, description="Minimum time between two scalings of a component.")
    stabilization: Duration = Field(
        0.0,
        le=86400,
        description="Stabilization window: of the requests in this time, the one with the smallest change is used.",
    )

    @model_validator(mode="after")
    def _steps_take_time(self) -> Self:
        if self.step and not self.cooldown:
            raise ValueError("step requires a cooldown: without it the next step would follow immediately")
        return self


class ScalingLimits(Section):
    """Limits of scale commands for a component; an annotation of its graph can override them."""

    min: int = Field(1, ge=0, description="Minimum replicas of a component.")
    max: int = Field(0, ge=0, description="Maximum replicas of a component; 0: no limit.")
    up: Direction = Direction()
    #: The effect of the last scaling is not visible at once; scaling down too late costs less than too early.
    down: Direction = Direction(cooldown=60.0)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if 0 < self.max < self.min:
            raise ValueError(f"min is {self.min} and max {self.max}: max must be 0 or at least min")
        return self


class Budget(Section):
    """A limit for the total GPUs of all desired replicas of some graphs."""

    name: str = Field(min_length=1, max_length=63, description="Name in messages and metrics.")
    namespaces: tuple[str, ...] = Field((), description="Namespaces whose graphs count; empty: all.")
    deployments: tuple[str, ...] = Field(
        (), description="Graphs that count, `name` or `namespace/name`; empty: all graphs of `namespaces`."
    )
    max_gpus: Bound = Field(-1, description="Maximum GPUs; no decision exceeds it; -1: no limit.")
    min_gpus: Bound = Field(-1, description="Minimum GPUs; a transfer may go below by one replica; -1: no limit.")
    advisory: bool = Field(False, description="Only report decisions that exceed this budget; refuse none.")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if 0 <= self.max_gpus < self.min_gpus:
            raise ValueError(f"minGpus ({self.min_gpus}) must not be above maxGpus ({self.max_gpus})")
        return self


class Scaler(Section):
    """Limits of scale commands."""

    budgets: tuple[Budget, ...] = Field((), description="GPU budgets; a graph may count in several.")
    managed: tuple[str, ...] = Field(
        (), description="Graphs that commands may scale, `namespace` or `namespace/name`; empty: all."
    )
    advisory: bool = Field(False, description="Compute and report decisions, but apply none.")
    intent_lifetime: Duration = Field(
        360.0, gt=0, le=86400, description="How long a request is kept after a budget delayed or refused it."
    )
    limits: ScalingLimits = ScalingLimits()
    cluster_trigger_authentications: tuple[str, ...] = Field(
        (),
        description="ClusterTriggerAuthentications of KEDA that graphs may name in triggers; empty: none. KEDA sends their "
        "secrets to the server that the author of the graph names.",
    )

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        names = [budget.name for budget in self.budgets]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"names of budgets must be unique; duplicates: {', '.join(twice)}")
        return self
