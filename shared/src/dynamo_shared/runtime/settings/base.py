"""What every section of the settings has in common, and the durations that Go writes."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from dynamo_shared.api.durations import PATTERN as DURATION_PATTERN
from dynamo_shared.api.durations import seconds

__all__ = ["DURATION_PATTERN", "Duration", "PortNumber", "Section", "seconds"]


class Section(BaseModel):
    """A part of the file: camelCase there, snake_case here; unknown fields are mistakes."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


def _not_negative(value: float) -> float:
    if value < 0:
        raise ValueError("a duration cannot be negative")
    return value


#: Seconds; written as a Go duration (`15m`) or a number of seconds.
Duration = Annotated[
    float, BeforeValidator(seconds), AfterValidator(_not_negative), Field(json_schema_extra={"format": "duration"})
]
PortNumber = Annotated[int, Field(ge=0, le=65535)]
