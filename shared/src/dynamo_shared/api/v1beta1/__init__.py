"""API version v1beta1, the hub: what services work with and what is stored."""

from dynamo_shared.api.meta import ObjectMeta
from dynamo_shared.api.model import to_dict
from dynamo_shared.api.v1beta1.component import Component, ComponentSpec, ComponentTopologyConstraint
from dynamo_shared.api.v1beta1.component_deployment import (
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
    parse_component,
)
from dynamo_shared.api.v1beta1.enums import (
    BackendFramework,
    CheckpointMode,
    ComponentKind,
    ComponentType,
    GraphState,
    RestartPhase,
    RestartStrategyType,
    RollingUpdatePhase,
    SharingMode,
)
from dynamo_shared.api.v1beta1.epp import ConfigMapKey
from dynamo_shared.api.v1beta1.experimental import (
    CheckpointIdentity,
    ComponentCheckpoint,
    Experimental,
    Failover,
    GpuMemoryService,
)
from dynamo_shared.api.v1beta1.graph import MAX_COMPONENTS, DynamoGraphDeployment, Restart, parse_graph
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequest
from dynamo_shared.api.v1beta1.scaling_adapter import DynamoGraphDeploymentScalingAdapter
from dynamo_shared.api.v1beta1.status import (
    CheckpointStatus,
    ComponentReplicas,
    GraphStatus,
    RestartStatus,
    RollingUpdateStatus,
)

__all__ = [
    "MAX_COMPONENTS",
    "BackendFramework",
    "CheckpointIdentity",
    "CheckpointMode",
    "CheckpointStatus",
    "Component",
    "ComponentCheckpoint",
    "ComponentKind",
    "ComponentReplicas",
    "ComponentSpec",
    "ComponentTopologyConstraint",
    "ComponentType",
    "ConfigMapKey",
    "DynamoComponentDeployment",
    "DynamoComponentDeploymentSpec",
    "DynamoGraphDeployment",
    "DynamoGraphDeploymentRequest",
    "DynamoGraphDeploymentScalingAdapter",
    "Experimental",
    "Failover",
    "GpuMemoryService",
    "GraphState",
    "GraphStatus",
    "ObjectMeta",
    "Restart",
    "RestartPhase",
    "RestartStatus",
    "RestartStrategyType",
    "RollingUpdatePhase",
    "RollingUpdateStatus",
    "SharingMode",
    "parse_component",
    "parse_graph",
    "to_dict",
]
