"""Objects as the API server gives them, as types. Unknown fields are passed over: a newer CRD may have more of them."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.field_errors import field_errors
from dynamo_shared.api.v1alpha1.checkpoint import DynamoCheckpoint
from dynamo_shared.api.v1alpha1.experimental import CheckpointIdentity


def parse_checkpoint(obj: dict[str, Any]) -> DynamoCheckpoint:
    """The checkpoint of a stored object, defaults filled in; InvalidManifest with every error where it is not valid."""
    try:
        return DynamoCheckpoint.model_validate(obj, extra="ignore")
    except ValidationError as error:
        raise InvalidManifest(field_errors(error)) from error


def identity_of(checkpoint: dict[str, Any]) -> CheckpointIdentity | None:
    """Identity of a stored checkpoint, whatever else is wrong with it; None where it has none."""
    try:
        return CheckpointIdentity.model_validate(checkpoint.get("spec", {}).get("identity"), extra="ignore")
    except ValidationError:
        return None
