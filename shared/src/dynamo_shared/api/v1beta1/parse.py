"""Objects as the API server gives them, as types. Unknown fields are passed over: a newer CRD may have more of them."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.field_errors import field_errors
from dynamo_shared.api.v1beta1.component_deployment import DynamoComponentDeployment
from dynamo_shared.api.v1beta1.graph import DynamoGraphDeployment


def parse_graph(obj: dict[str, Any]) -> DynamoGraphDeployment:
    """The graph of a stored object, defaults filled in; InvalidManifest with every error where it is not valid."""
    try:
        return DynamoGraphDeployment.model_validate(obj, extra="ignore")
    except ValidationError as error:
        raise InvalidManifest(field_errors(error)) from error


def parse_component(obj: dict[str, Any]) -> DynamoComponentDeployment:
    """The component of a stored object, defaults filled in; InvalidManifest with every error where it is not valid."""
    try:
        return DynamoComponentDeployment.model_validate(obj, extra="ignore")
    except ValidationError as error:
        raise InvalidManifest(field_errors(error)) from error
