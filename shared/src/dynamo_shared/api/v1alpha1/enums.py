"""Closed sets of words in v1alpha1; those that v1beta1 shares stand there."""

from enum import StrEnum


class SharingMode(StrEnum):
    """Whether engines that share GPU memory live in one pod or in several."""

    INTRA_POD = "intraPod"
    INTER_POD = "interPod"


class RequestBackend(StrEnum):
    """Inference engine that a request asks for; auto leaves the choice to profiling."""

    AUTO = "auto"
    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM = "trtllm"


class RequestState(StrEnum):
    """How far a request is."""

    INITIALIZING = "Initializing"
    PENDING = "Pending"
    PROFILING = "Profiling"
    DEPLOYING = "Deploying"
    READY = "Ready"
    DEPLOYMENT_DELETED = "DeploymentDeleted"
    FAILED = "Failed"


class ModelType(StrEnum):
    """What a DynamoModel names: weights of their own, or an adapter of a base model."""

    BASE = "base"
    LORA = "lora"
    ADAPTER = "adapter"


class CheckpointPhase(StrEnum):
    """How far a checkpoint is."""

    PENDING = "Pending"
    CREATING = "Creating"
    READY = "Ready"
    FAILED = "Failed"


class StorageType(StrEnum):
    """Where the bytes of a checkpoint are."""

    PVC = "pvc"
    S3 = "s3"
    OCI = "oci"
