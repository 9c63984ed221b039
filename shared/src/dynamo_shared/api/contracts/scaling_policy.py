"""How far and how fast scale commands may scale a graph's components: an annotation, since no field is for that.

Whatever is left out is as the settings say (`platform.scaler.limits`). An unknown key is a mistake here: a typo must not
lift a limit.
"""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from dynamo_shared.api.contracts.base import ContractModel, Problem, Whole
from dynamo_shared.api.durations import PATTERN, seconds

#: In place of a component's name: all that are not named.
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
    """Replicas by which one decision changes the component at most; 0: any number. Needs a cooldown."""
    cooldown: Span = None
    """How long the component rests after it was scaled."""
    stabilization: Span = None
    """How much history of requests counts: the one that changes least in this direction is taken."""


class ComponentPolicy(ContractModel):
    """Limits of one component."""

    model_config = ConfigDict(extra="forbid")

    min: Count = None
    """Replicas that it keeps."""
    max: Count = None
    """Replicas that it has at most; 0: any number."""
    up: DirectionPolicy | None = None
    """Growing."""
    down: DirectionPolicy | None = None
    """Shrinking."""

    def problems(self) -> Iterator[Problem]:
        """Bounds in their order, as far as both are given."""
        if self.min is not None and self.max and self.max < self.min:
            yield ("max",), f"must be 0, for any number, or at least min, which is {self.min}"


class ScalingPolicy(ContractModel):
    """Limits by component, `*` for all that are not named."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, ComponentPolicy] = Field(init=False)
