"""Closed sets of words in v1beta1."""

from enum import StrEnum


class BackendFramework(StrEnum):
    """Inference engine."""

    SGLANG = "sglang"
    VLLM = "vllm"
    TRTLLM = "trtllm"


class ComponentType(StrEnum):
    """What a component does in the graph."""

    FRONTEND = "frontend"
    WORKER = "worker"
    PREFILL = "prefill"
    DECODE = "decode"
    PLANNER = "planner"
    EPP = "epp"


class RestartStrategyType(StrEnum):
    """Whether components restart one after the other or all at once."""

    SEQUENTIAL = "Sequential"
    PARALLEL = "Parallel"


class SharingMode(StrEnum):
    """Whether engines that share GPU memory live in one pod or in several."""

    INTRA_POD = "IntraPod"
    INTER_POD = "InterPod"


class KvTransferEnforcement(StrEnum):
    """Whether a KV cache must stay in its domain, or had better."""

    REQUIRED = "required"
    PREFERRED = "preferred"


class CheckpointMode(StrEnum):
    """Whether a missing checkpoint is made or waited for."""

    AUTO = "Auto"
    MANUAL = "Manual"


class CheckpointStartupPolicy(StrEnum):
    """Whether pods start before their checkpoint is ready."""

    IMMEDIATE = "Immediate"
    WAIT_FOR_CHECKPOINT = "WaitForCheckpoint"


class CheckpointDeletionPolicy(StrEnum):
    """Whether a checkpoint that the platform created goes with its graph."""

    DELETE = "Delete"
    RETAIN = "Retain"


class GraphState(StrEnum):
    """How far a graph is."""

    INITIALIZING = "initializing"
    PENDING = "pending"
    SUCCESSFUL = "successful"
    FAILED = "failed"


class ComponentKind(StrEnum):
    """Kind of object that runs a component's pods."""

    POD_CLIQUE = "PodClique"
    POD_CLIQUE_SCALING_GROUP = "PodCliqueScalingGroup"
    DEPLOYMENT = "Deployment"
    LEADER_WORKER_SET = "LeaderWorkerSet"


class RollingUpdatePhase(StrEnum):
    """How far the exchange of a graph's workers is."""

    NONE = ""
    PENDING = "Pending"
    IN_PROGRESS = "InProgress"
    COMPLETED = "Completed"
    FAILED = "Failed"


class RestartPhase(StrEnum):
    """How far a restart is; the CRD leaves the word open."""

    PENDING = "Pending"
    RESTARTING = "Restarting"
    COMPLETED = "Completed"
    FAILED = "Failed"
    SUPERSEDED = "Superseded"
