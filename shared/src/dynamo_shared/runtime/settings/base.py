"""Base class and types of all sections of the settings."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator
from pydantic.alias_generators import to_camel

from dynamo_shared.api.durations import seconds


class Section(BaseModel):
    """A section of the file. Fields are camelCase in the file, snake_case here; unknown fields are errors."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _empty_is_unset(cls, value: Any, info: ValidationInfo) -> Any:
        """Env files and templates write empty values for unset ones; an empty path would be the working directory."""
        may_be_unset = cls.model_fields[str(info.field_name)].default is None
        return None if may_be_unset and value == "" else value


def _not_negative(value: float) -> float:
    if value < 0:
        raise ValueError("must not be negative")
    return value


#: Seconds; written as a Go duration (`15m`) or a number of seconds.
Duration = Annotated[
    float, BeforeValidator(seconds), AfterValidator(_not_negative), Field(json_schema_extra={"format": "duration"})
]
PortNumber = Annotated[int, Field(ge=0, le=65535)]
