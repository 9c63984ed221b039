"""API version v1beta1, the hub: what services work with and what is stored."""

from __future__ import annotations

from dynamo_shared.api.meta import Condition, ConditionStatus, EnvVar, ObjectMeta, OwnerReference, PodTemplate
from dynamo_shared.api.model import to_dict
from dynamo_shared.api.v1beta1.component import (
    CompilationCache,
    Component,
    ComponentSpec,
    ComponentTopologyConstraint,
    ModelReference,
    Multinode,
    ScalingAdapter,
)
from dynamo_shared.api.v1beta1.component_deployment import DynamoComponentDeployment, DynamoComponentDeploymentSpec
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
from dynamo_shared.api.v1beta1.epp import ConfigMapKey, EndpointPickerConfig, EppConfig
from dynamo_shared.api.v1beta1.experimental import (
    CheckpointIdentity,
    ComponentCheckpoint,
    Experimental,
    Failover,
    GpuMemoryService,
)
from dynamo_shared.api.v1beta1.graph import (
    MAX_COMPONENTS,
    DynamoGraphDeployment,
    DynamoGraphDeploymentSpec,
    GraphTopologyConstraint,
    Restart,
    RestartStrategy,
)
from dynamo_shared.api.v1beta1.parse import parse_component, parse_graph
from dynamo_shared.api.v1beta1.status import (
    CheckpointStatus,
    ComponentReplicas,
    ComponentStatus,
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
    "CompilationCache",
    "Component",
    "ComponentCheckpoint",
    "ComponentKind",
    "ComponentReplicas",
    "ComponentSpec",
    "ComponentStatus",
    "ComponentTopologyConstraint",
    "ComponentType",
    "Condition",
    "ConditionStatus",
    "ConfigMapKey",
    "DynamoComponentDeployment",
    "DynamoComponentDeploymentSpec",
    "DynamoGraphDeployment",
    "DynamoGraphDeploymentSpec",
    "EndpointPickerConfig",
    "EnvVar",
    "EppConfig",
    "Experimental",
    "Failover",
    "GpuMemoryService",
    "GraphState",
    "GraphStatus",
    "GraphTopologyConstraint",
    "ModelReference",
    "Multinode",
    "ObjectMeta",
    "OwnerReference",
    "PodTemplate",
    "Restart",
    "RestartPhase",
    "RestartStatus",
    "RestartStrategy",
    "RestartStrategyType",
    "RollingUpdatePhase",
    "RollingUpdateStatus",
    "ScalingAdapter",
    "SharingMode",
    "parse_component",
    "parse_graph",
    "to_dict",
]
