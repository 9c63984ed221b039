"""Limits for the size and speed of scale commands for a graph's components, in an annotation, because no field exists.

Omitted values come from the settings (`platform.scaler.limits`). An unknown key is an error: a typo must not remove a
limit.
"""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from dynamo_shared.api.contracts.base import ContractModel, Problem, Whole
from dynamo_shared.api.durations import PATTERN, seconds

#: Stands for all components that are not named.
ANY = "*"
DAY = 86400


def _duration(value: Any) -> Any:
    try:
        amount = seconds(value)
    except ValueError:
        amount = None
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount <= DAY:
        raise PydanticCustomError("duration", "write a duration such as 30s, 15m or 1h30m, or seconds; at most a day")
    return value


Span = Annotated[
    Any,
    AfterValidator(_duration),
    WithJsonSchema({"type": ["number", "string"], "pattern": PATTERN, "minimum": 0, "maximum": DAY}),
]
Count = Annotated[Whole | None, Field(ge=0)]


class DirectionPolicy(ContractModel):
    """Scaling in one direction."""

    model_config = ConfigDict(extra="forbid")

    step: Count = None
    """Most replicas by which one decision changes the component; 0: no limit. Needs a cooldown."""
    cooldown: Span = None
    """Pause of the component after it was scaled."""
    stabilization: Span = None
    """Length of the history of requests: the request with the smallest change in this direction is used."""


class ComponentPolicy(ContractModel):
    """Limits of one component."""

    model_config = ConfigDict(extra="forbid")

    min: Count = None
    """Fewest replicas."""
    max: Count = None
    """Most replicas; 0: no limit."""
    up: DirectionPolicy | None = None
    """Scaling up."""
    down: DirectionPolicy | None = None
    """Scaling down."""

    def problems(self) -> Iterator[Problem]:
        """Minimum and maximum are in order, if both are given."""
        if self.min is not None and self.max and self.max < self.min:
            yield ("max",), f"must be 0 for no limit, or at least min, which is {self.min}"


class ScalingPolicy(ContractModel):
    """Limits by component, `*` for all components that are not named."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, ComponentPolicy] = Field(init=False)
