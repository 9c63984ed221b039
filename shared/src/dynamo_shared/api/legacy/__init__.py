"""Kinds of the platform before there were graphs: served and checked, so that old manifests can still be read and moved."""

from __future__ import annotations

from dynamo_shared.api.legacy.deployment import DynamoDeployment, DynamoDeploymentSpec, DynamoDeploymentStatus
from dynamo_shared.api.legacy.nim_deployment import DynamoNimDeployment, DynamoNimDeploymentSpec
from dynamo_shared.api.legacy.nim_request import (
    BuildPhase,
    DynamoNimRequest,
    DynamoNimRequestSpec,
    DynamoNimRequestStatus,
)
from dynamo_shared.api.legacy.service import (
    ClaimToMount,
    ExternalService,
    LegacyAutoscaling,
    LegacyServiceSpec,
    LegacyStatus,
    ServiceOverride,
)
from dynamo_shared.api.legacy.successor import Successor, command_of_artifact, graph_of_deployment, graph_of_services

__all__ = [
    "BuildPhase",
    "ClaimToMount",
    "DynamoDeployment",
    "DynamoDeploymentSpec",
    "DynamoDeploymentStatus",
    "DynamoNimDeployment",
    "DynamoNimDeploymentSpec",
    "DynamoNimRequest",
    "DynamoNimRequestSpec",
    "DynamoNimRequestStatus",
    "ExternalService",
    "LegacyAutoscaling",
    "LegacyServiceSpec",
    "LegacyStatus",
    "ServiceOverride",
    "Successor",
    "command_of_artifact",
    "graph_of_deployment",
    "graph_of_services",
]
