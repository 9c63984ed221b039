"""What every section of the settings has in common, and the durations that Go writes."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
DURATION_PATTERN = rf"^({_PART.pattern})+$"


class Section(BaseModel):
    """A part of the file: camelCase there, snake_case here; unknown fields are mistakes."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


def seconds(value: object) -> object:
    """A Go duration such as `1m30s` as seconds; numbers are seconds already. ValueError for anything else."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not re.fullmatch(rf"(?:{_PART.pattern})+", text):
        raise ValueError("write a duration such as 30s, 15m or 1h30m")
    return sum(float(amount) * _UNITS[unit] for amount, unit in _PART.findall(text))


def _not_negative(value: float) -> float:
    if value < 0:
        raise ValueError("a duration cannot be negative")
    return value


#: Seconds; written as a Go duration (`15m`) or a number of seconds.
Duration = Annotated[
    float, BeforeValidator(seconds), AfterValidator(_not_negative), Field(json_schema_extra={"format": "duration"})
]
PortNumber = Annotated[int, Field(ge=0, le=65535)]
