"""API version v1alpha1: services in a map. It is read and converted; services work with v1beta1."""

from dynamo_shared.api.v1alpha1.checkpoint import DynamoCheckpoint, DynamoCheckpointSpec, identity_of, parse_checkpoint
from dynamo_shared.api.v1alpha1.component_deployment import DynamoComponentDeployment
from dynamo_shared.api.v1alpha1.dynamo_model import DynamoModel
from dynamo_shared.api.v1alpha1.graph import DynamoGraphDeployment
from dynamo_shared.api.v1alpha1.request import DynamoGraphDeploymentRequest
from dynamo_shared.api.v1alpha1.scaling_adapter import DynamoGraphDeploymentScalingAdapter
from dynamo_shared.api.v1alpha1.worker_metadata import DynamoWorkerMetadata

__all__ = [
    "DynamoCheckpoint",
    "DynamoCheckpointSpec",
    "DynamoComponentDeployment",
    "DynamoGraphDeployment",
    "DynamoGraphDeploymentRequest",
    "DynamoGraphDeploymentScalingAdapter",
    "DynamoModel",
    "DynamoWorkerMetadata",
    "identity_of",
    "parse_checkpoint",
]
