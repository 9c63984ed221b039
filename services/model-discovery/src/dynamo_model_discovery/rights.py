"""The rights of model-discovery."""

from dynamo_shared.api.resources import DYNAMO_MODELS, EVENTS
from dynamo_shared.api.rights import CLAIMS, SCRAPED, SERIES, UNCONFIRMED, Right, standby

from dynamo_model_discovery.app import NAME
from dynamo_model_discovery.workers.discovery import NAME as WORKER_DISCOVERY

RIGHTS = (
    *standby(NAME, WORKER_DISCOVERY),
    *CLAIMS,
    *SCRAPED,
    Right(DYNAMO_MODELS, ("get",), unused=UNCONFIRMED),
    Right(DYNAMO_MODELS, ("patch",)),
    Right(DYNAMO_MODELS, ("patch",), "status"),
    Right(EVENTS, ("create",)),
    Right(EVENTS, ("patch",), unused=SERIES),
)
