"""The rights of the scaler."""

from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    EVENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    SCALED_OBJECTS,
)
from dynamo_shared.api.rights import CLAIMS, SCRAPED, SERIES, Right, standby

from dynamo_scaler.app import NAME

RIGHTS = (
    *standby(NAME),
    *CLAIMS,
    *SCRAPED,
    Right(DYNAMO_GRAPH_DEPLOYMENTS, ("get", "patch")),
    Right(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, ("get", "patch")),
    Right(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, ("patch",), "status"),
    Right(HORIZONTAL_POD_AUTOSCALERS, ("create", "delete", "get", "patch")),
    Right(
        SCALED_OBJECTS, ("create", "delete", "get", "patch"), unused="as HorizontalPodAutoscalers, by the same lines"
    ),
    Right(EVENTS, ("create",)),
    Right(EVENTS, ("patch",), unused=SERIES),
)
