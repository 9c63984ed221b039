"""Enums of v1alpha1; v1beta1 defines the shared ones."""

from enum import StrEnum


class SharingMode(StrEnum):
    """Whether engines that share GPU memory are in one pod or in several."""

    INTRA_POD = "intraPod"
    INTER_POD = "interPod"


class RequestBackend(StrEnum):
    """Inference engine of a request; with auto, profiling selects it."""

    AUTO = "auto"
    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM = "trtllm"


class RequestState(StrEnum):
    """Progress of a request."""

    INITIALIZING = "Initializing"
    PENDING = "Pending"
    PROFILING = "Profiling"
    DEPLOYING = "Deploying"
    READY = "Ready"
    DEPLOYMENT_DELETED = "DeploymentDeleted"
    FAILED = "Failed"


class ModelType(StrEnum):
    """What a DynamoModel names: a base model, or an adapter of one."""

    BASE = "base"
    LORA = "lora"
    ADAPTER = "adapter"


class CheckpointPhase(StrEnum):
    """Progress of a checkpoint."""

    PENDING = "Pending"
    CREATING = "Creating"
    READY = "Ready"
    FAILED = "Failed"


class StorageType(StrEnum):
    """Type of storage of a checkpoint."""

    PVC = "pvc"
    S3 = "s3"
    OCI = "oci"
