"""What the planner may do; what it gives a profiling Job it must be allowed itself."""

from __future__ import annotations

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
from dynamo_shared.api.rights import READ, Right

GIVEN = "given to profiling Jobs"
RIGHTS = (
    Right(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ("get", "patch")),
    Right(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, ("get", "patch", "update"), "status"),
    Right(DYNAMO_GRAPH_DEPLOYMENTS, ("create", "get", "patch")),
    Right(DYNAMO_GRAPH_DEPLOYMENTS, ("get", "patch", "update"), "status"),
    Right(CONFIG_MAPS, ("create", "delete", "get", "patch")),
    Right(JOBS, ("create", "delete", "get", "patch")),
    Right(SERVICE_ACCOUNTS, ("create", "get", "patch")),
    Right(ROLES, ("create", "get", "patch")),
    Right(ROLE_BINDINGS, ("create", "get", "patch")),
    Right(PERSISTENT_VOLUME_CLAIMS, ("get",)),
    Right(PODS, ("list",)),
    Right(EVENTS, ("create", "patch")),
    Right(DYNAMO_GRAPH_DEPLOYMENTS, ("delete", "list", "update", "watch"), unused=GIVEN),
    Right(PODS, READ, unused=GIVEN),
    Right(PODS, READ, "log", unused=GIVEN),
    Right(SERVICES, READ, unused=GIVEN),
    Right(CONFIG_MAPS, ("list", "update"), unused=GIVEN),
)
