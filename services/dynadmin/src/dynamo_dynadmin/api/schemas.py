"""Base classes of the bodies and answers of the API."""

from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Schema(BaseModel):
    """Base of all: camelCase on the wire."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, use_attribute_docstrings=True)


class BodySchema(Schema):
    """Base of request bodies: an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


def without_defaults(schema: dict[str, Any]) -> None:
    """Changes a schema: a field that a message omits has no value."""
    for each in schema["properties"].values():
        each.pop("default", None)


class KubernetesSchema(BaseModel):
    """Base of Kubernetes' objects: other fields than the described ones occur."""

    model_config = ConfigDict(extra="allow", use_attribute_docstrings=True, json_schema_extra=without_defaults)
