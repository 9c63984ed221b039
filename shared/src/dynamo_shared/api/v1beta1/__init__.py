"""API version v1beta1, the hub: services work with it, and objects are stored in it."""

from dynamo_shared.api.model import to_dict
from dynamo_shared.api.v1beta1.component import Component, ComponentSpec
from dynamo_shared.api.v1beta1.component_deployment import (
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
    parse_component,
)
from dynamo_shared.api.v1beta1.enums import (
    BackendFramework,
    CheckpointMode,
    ComponentType,
    GraphState,
    RollingUpdatePhase,
)
from dynamo_shared.api.v1beta1.experimental import CheckpointIdentity, Failover, GpuMemoryService
from dynamo_shared.api.v1beta1.graph import DynamoGraphDeployment, parse_graph
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequest
from dynamo_shared.api.v1beta1.scaling_adapter import DynamoGraphDeploymentScalingAdapter
from dynamo_shared.api.v1beta1.status import CheckpointStatus, ComponentReplicas, RestartStatus, RollingUpdateStatus

__all__ = [
    "BackendFramework",
    "CheckpointIdentity",
    "CheckpointMode",
    "CheckpointStatus",
    "Component",
    "ComponentReplicas",
    "ComponentSpec",
    "ComponentType",
    "DynamoComponentDeployment",
    "DynamoComponentDeploymentSpec",
    "DynamoGraphDeployment",
    "DynamoGraphDeploymentRequest",
    "DynamoGraphDeploymentScalingAdapter",
    "Failover",
    "GpuMemoryService",
    "GraphState",
    "RestartStatus",
    "RollingUpdatePhase",
    "RollingUpdateStatus",
    "parse_component",
    "parse_graph",
    "to_dict",
]
