"""The rights of the image-builder: it writes the status of its kind, and runs Jobs only in the namespace of builds."""

from dynamo_shared.api.resources import DYNAMO_NIM_REQUESTS, EVENTS, JOBS, PODS
from dynamo_shared.api.rights import CLAIMS, SCRAPED, SERIES, UNCONFIRMED, Right, RightScope, standby

from dynamo_image_builder.app import NAME

RIGHTS = (
    *standby(NAME),
    *CLAIMS,
    *SCRAPED,
    Right(DYNAMO_NIM_REQUESTS, ("get",), unused=UNCONFIRMED),
    Right(DYNAMO_NIM_REQUESTS, ("patch",), "status"),
    Right(EVENTS, ("create",)),
    Right(EVENTS, ("patch",), unused=SERIES),
    Right(JOBS, ("create", "get", "patch"), scope=RightScope.BUILDS),
    Right(
        JOBS,
        ("delete",),
        scope=RightScope.BUILDS,
        unused="deletes a build whose result was lost, that failed before the request, or that no request needs any more",
    ),
    Right(PODS, ("list",), scope=RightScope.BUILDS),
)
