"""What the scaler may do."""

from __future__ import annotations

from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    EVENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    SCALED_OBJECTS,
)
from dynamo_shared.api.rights import Right

RIGHTS = (
    Right(DYNAMO_GRAPH_DEPLOYMENTS, ("get", "patch")),
    Right(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, ("create", "get", "patch")),
    Right(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, ("get", "patch", "update"), "status"),
    Right(HORIZONTAL_POD_AUTOSCALERS, ("create", "delete", "get", "patch", "update")),
    Right(SCALED_OBJECTS, ("create", "delete", "get", "patch", "update")),
    Right(EVENTS, ("create", "patch")),
)
