"""The profiler's rights. They include all rights that it grants to a profiling Job."""

from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    EVENTS,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from dynamo_shared.api.rights import CLAIMS, RACE, READ, SCRAPED, SERIES, UNCONFIRMED, Right, standby

from dynamo_profiler.requests.controller import IDENTITY

GIVEN = "given to profiling Jobs"
CORRECTED = "corrects an object of its own that differs from the desired one"

RIGHTS = (
    *standby(IDENTITY),
    *CLAIMS,
    *SCRAPED,
    Right(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ("get",), unused=UNCONFIRMED),
    Right(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ("patch",), unused="removes the finalizer of the reference operator"),
    Right(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ("patch",), "status"),
    Right(DYNAMO_GRAPH_DEPLOYMENTS, ("create", "get")),
    Right(CONFIG_MAPS, ("create", "get", "patch")),
    Right(CONFIG_MAPS, ("delete",), unused="removes the results of a Job before the Job starts again"),
    Right(JOBS, ("create",)),
    Right(JOBS, ("get",), unused=RACE),
    *(Right(each, ("create", "get")) for each in (SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS)),
    *(Right(each, ("patch",), unused=CORRECTED) for each in (SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS)),
    Right(PERSISTENT_VOLUME_CLAIMS, ("get",), unused="checks whether a request's claim with models exists"),
    Right(PODS, ("list",)),
    Right(EVENTS, ("create", "list")),
    Right(EVENTS, ("patch",), unused=SERIES),
    Right(DYNAMO_GRAPH_DEPLOYMENTS, ("delete", "list", "patch", "update", "watch"), unused=GIVEN),
    Right(PODS, READ, unused=GIVEN),
    Right(PODS, READ, "log", unused=GIVEN),
    Right(SERVICES, READ, unused=GIVEN),
    Right(CONFIG_MAPS, ("list", "update"), unused=GIVEN),
)
