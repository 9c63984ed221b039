"""What model-discovery may do."""

from __future__ import annotations

from dynamo_shared.api.resources import DYNAMO_MODELS, EVENTS
from dynamo_shared.api.rights import Right

RIGHTS = (
    Right(DYNAMO_MODELS, ("get", "patch")),
    Right(DYNAMO_MODELS, ("get", "patch", "update"), "status"),
    Right(EVENTS, ("create", "patch")),
)
