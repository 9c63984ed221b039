"""Legacy kinds, from before DynamoGraphDeployment: served and validated, so that old manifests can be read and migrated."""

from dynamo_shared.api.legacy.deployment import DynamoDeployment
from dynamo_shared.api.legacy.nim_deployment import DynamoNimDeployment
from dynamo_shared.api.legacy.nim_request import BuildPhase, DynamoNimRequest
from dynamo_shared.api.legacy.successor import Successor, command_of_artifact, graph_of_deployment, graph_of_services

__all__ = [
    "BuildPhase",
    "DynamoDeployment",
    "DynamoNimDeployment",
    "DynamoNimRequest",
    "Successor",
    "command_of_artifact",
    "graph_of_deployment",
    "graph_of_services",
]
