"""The rights of model-discovery."""

from dynamo_shared.api.resources import DYNAMO_MODELS, EVENTS
from dynamo_shared.api.rights import CLAIMS, SCRAPED, SERIES, STANDBY, UNCONFIRMED, Right

RIGHTS = (
    *STANDBY,
    *CLAIMS,
    *SCRAPED,
    Right(DYNAMO_MODELS, ("get",), unused=UNCONFIRMED),
    Right(DYNAMO_MODELS, ("patch",)),
    Right(DYNAMO_MODELS, ("patch",), "status"),
    Right(EVENTS, ("create",)),
    Right(EVENTS, ("patch",), unused=SERIES),
)
