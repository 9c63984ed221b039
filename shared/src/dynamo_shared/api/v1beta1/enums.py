"""Enums of v1beta1."""

from enum import StrEnum


class BackendFramework(StrEnum):
    """Inference engine."""

    SGLANG = "sglang"
    VLLM = "vllm"
    TRTLLM = "trtllm"


class ComponentType(StrEnum):
    """Function of a component in the graph."""

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
    """Whether engines that share GPU memory are in one pod or in several."""

    INTRA_POD = "IntraPod"
    INTER_POD = "InterPod"


class KvTransferEnforcement(StrEnum):
    """Whether KV caches must stay in their domain, or preferably stay there."""

    REQUIRED = "required"
    PREFERRED = "preferred"


class CheckpointMode(StrEnum):
    """Whether a missing checkpoint is created or waited for."""

    AUTO = "Auto"
    MANUAL = "Manual"


class CheckpointStartupPolicy(StrEnum):
    """Whether pods start before their checkpoint is ready."""

    IMMEDIATE = "Immediate"
    WAIT_FOR_CHECKPOINT = "WaitForCheckpoint"


class CheckpointDeletionPolicy(StrEnum):
    """Whether a checkpoint that the platform created is deleted with its graph."""

    DELETE = "Delete"
    RETAIN = "Retain"


class GraphState(StrEnum):
    """Progress of a graph."""

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
    """Progress of the replacement of a graph's workers."""

    NONE = ""
    PENDING = "Pending"
    IN_PROGRESS = "InProgress"
    COMPLETED = "Completed"
    FAILED = "Failed"


#: Phases of an unfinished rolling update. Only the reference writes Pending, when one begins. A tuple, because a stored
#: value may be of any type.
UNFINISHED_UPDATE = (RollingUpdatePhase.PENDING, RollingUpdatePhase.IN_PROGRESS)


class RestartPhase(StrEnum):
    """Progress of a restart; the CRD declares it as a string."""

    PENDING = "Pending"
    RESTARTING = "Restarting"
    COMPLETED = "Completed"
    FAILED = "Failed"
    SUPERSEDED = "Superseded"
