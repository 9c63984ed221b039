"""Reads stored objects as types. Unknown fields are ignored, because the CRD may be newer."""

from typing import TypeVar

from pydantic import ValidationError

from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.field_errors import field_errors
from dynamo_shared.api.model import ApiModel
from dynamo_shared.api.objects import KubeObject

Model = TypeVar("Model", bound=ApiModel)


def parse(model: type[Model], obj: KubeObject) -> Model:
    """A stored object as a type, with defaults. Raises InvalidManifest with all errors."""
    try:
        return model.model_validate(obj, extra="ignore")
    except ValidationError as error:
        raise InvalidManifest(field_errors(error)) from error
