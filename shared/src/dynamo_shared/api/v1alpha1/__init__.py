"""API version v1alpha1: services in a map. v1beta1 is what services work with; this is read, and converted."""

from __future__ import annotations

from dynamo_shared.api.v1alpha1.checkpoint import (
    CheckpointJob,
    DynamoCheckpoint,
    DynamoCheckpointSpec,
    DynamoCheckpointStatus,
    FixedIdentity,
)
from dynamo_shared.api.v1alpha1.component import EppConfig, ModelReference, Multinode, ServiceSpec
from dynamo_shared.api.v1alpha1.component_deployment import DynamoComponentDeployment, DynamoComponentDeploymentSpec
from dynamo_shared.api.v1alpha1.dynamo_model import (
    DynamoModel,
    DynamoModelSpec,
    DynamoModelStatus,
    ModelEndpoint,
    ModelSource,
)
from dynamo_shared.api.v1alpha1.enums import (
    CheckpointPhase,
    ModelType,
    RequestBackend,
    RequestState,
    SharingMode,
    StorageType,
)
from dynamo_shared.api.v1alpha1.experimental import CheckpointIdentity, ComponentCheckpoint, Failover, GpuMemoryService
from dynamo_shared.api.v1alpha1.exposure import IngressSpec, IngressTls, ScalingAdapter, ServiceAutoscaling
from dynamo_shared.api.v1alpha1.graph import DynamoGraphDeployment, DynamoGraphDeploymentSpec, GraphTopologyConstraint
from dynamo_shared.api.v1alpha1.parse import identity_of, parse_checkpoint
from dynamo_shared.api.v1alpha1.pods import (
    ExtraPodMetadata,
    FrontendSidecar,
    ResourceAmounts,
    ServiceResources,
    SharedMemory,
    VolumeClaim,
    VolumeMount,
)
from dynamo_shared.api.v1alpha1.request import (
    ConfigReference,
    DeploymentOverrides,
    DeploymentStatus,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
    DynamoGraphDeploymentRequestStatus,
    JobResources,
    ProfilingConfigSpec,
)
from dynamo_shared.api.v1alpha1.scaling_adapter import (
    DynamoGraphDeploymentScalingAdapter,
    ScalingAdapterSpec,
    ScalingAdapterStatus,
    ServiceReference,
)
from dynamo_shared.api.v1alpha1.status import ComponentStatus, GraphStatus, RollingUpdateStatus, ServiceReplicas
from dynamo_shared.api.v1alpha1.worker_metadata import DynamoWorkerMetadata, DynamoWorkerMetadataSpec

__all__ = [
    "CheckpointIdentity",
    "CheckpointJob",
    "CheckpointPhase",
    "ComponentCheckpoint",
    "ComponentStatus",
    "ConfigReference",
    "DeploymentOverrides",
    "DeploymentStatus",
    "DynamoCheckpoint",
    "DynamoCheckpointSpec",
    "DynamoCheckpointStatus",
    "DynamoComponentDeployment",
    "DynamoComponentDeploymentSpec",
    "DynamoGraphDeployment",
    "DynamoGraphDeploymentRequest",
    "DynamoGraphDeploymentRequestSpec",
    "DynamoGraphDeploymentRequestStatus",
    "DynamoGraphDeploymentScalingAdapter",
    "DynamoGraphDeploymentSpec",
    "DynamoModel",
    "DynamoModelSpec",
    "DynamoModelStatus",
    "DynamoWorkerMetadata",
    "DynamoWorkerMetadataSpec",
    "EppConfig",
    "ExtraPodMetadata",
    "Failover",
    "FixedIdentity",
    "FrontendSidecar",
    "GpuMemoryService",
    "GraphStatus",
    "GraphTopologyConstraint",
    "IngressSpec",
    "IngressTls",
    "JobResources",
    "ModelEndpoint",
    "ModelReference",
    "ModelSource",
    "ModelType",
    "Multinode",
    "ProfilingConfigSpec",
    "RequestBackend",
    "RequestState",
    "ResourceAmounts",
    "RollingUpdateStatus",
    "ScalingAdapter",
    "ScalingAdapterSpec",
    "ScalingAdapterStatus",
    "ServiceAutoscaling",
    "ServiceReference",
    "ServiceReplicas",
    "ServiceResources",
    "ServiceSpec",
    "SharedMemory",
    "SharingMode",
    "StorageType",
    "VolumeClaim",
    "VolumeMount",
    "identity_of",
    "parse_checkpoint",
]
