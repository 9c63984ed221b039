"""What is watched: the one table. A resource added here is in STATE, and in the cache of every service that reads it."""

from __future__ import annotations

from dataclasses import dataclass

from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)

OPERATOR = "dynamo-operator"
"""Value of `app.kubernetes.io/managed-by` on what belongs to no single graph."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A resource and which of its objects are watched (a label selector; empty: all)."""

    resource: Resource
    label_selector: str = ""


OF_A_GRAPH = labels.GRAPH_DEPLOYMENT_NAME
"""As a selector: whatever carries the label, with any value."""

OF_A_NAMESPACE = f"{labels.APP_MANAGED_BY}={OPERATOR}"

WATCHED: tuple[Watched, ...] = (
    Watched(DYNAMO_GRAPH_DEPLOYMENTS),
    Watched(DYNAMO_COMPONENT_DEPLOYMENTS),
    Watched(DEPLOYMENTS, OF_A_GRAPH),
    Watched(SERVICES, OF_A_GRAPH),
    Watched(SERVICE_ACCOUNTS, OF_A_NAMESPACE),
    Watched(ROLES, OF_A_NAMESPACE),
    Watched(ROLE_BINDINGS, OF_A_NAMESPACE),
)
