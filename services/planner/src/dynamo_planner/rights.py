"""The planner's permissions: it reads the inputs of planning, and reports. Only the scaler scales."""

from dynamo_shared.api.resources import CONFIG_MAPS, DYNAMO_GRAPH_DEPLOYMENTS, EVENTS
from dynamo_shared.api.rights import CLAIMS, RACE, SCRAPED, SERIES, Right, standby

from dynamo_planner.planning.controller import IDENTITY

RIGHTS = (
    *standby(IDENTITY),
    *CLAIMS,
    *SCRAPED,
    Right(DYNAMO_GRAPH_DEPLOYMENTS, ("get",), unused=RACE),
    Right(DYNAMO_GRAPH_DEPLOYMENTS, ("patch",), "status"),
    Right(CONFIG_MAPS, ("get",)),
    Right(EVENTS, ("create",)),
    Right(EVENTS, ("patch",), unused=SERIES),
)
