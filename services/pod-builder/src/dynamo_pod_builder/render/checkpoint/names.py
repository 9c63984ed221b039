"""Names of what belongs to a checkpoint, and what the snapshot agent knows it by."""

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import SNAPSHOT_ARTIFACT_VERSION
from dynamo_shared.api.snapshots import CONTROL_PATH

FIRST_VERSION = "1"

#: What a container that a checkpoint is taken of leaves for the agent.
READY_FOR_CHECKPOINT = f"{CONTROL_PATH}/ready-for-checkpoint"
#: Volume of the storage that holds checkpoints.
STORAGE = "checkpoint-storage"
#: Volume from which a restored process learns which pod it is in now.
POD_INFO = "podinfo"
POD_INFO_PATH = "/etc/podinfo"
#: The snapshot agent's container and its volume, in its DaemonSet.
AGENT_CONTAINER = "agent"
AGENT_VOLUME = "checkpoints"


def checkpoint(identity_hash: str) -> str:
    """DynamoCheckpoint that is made for components that name an identity alone."""
    return f"checkpoint-{identity_hash}"


def job(identity_hash: str, version: str) -> str:
    """Job that takes a checkpoint; another version of the files is another Job."""
    return f"checkpoint-job-{identity_hash}-{version}"


def version_of(obj: KubeObject) -> str:
    """Version of a checkpoint's files, by the annotation of its DynamoCheckpoint."""
    return objects.annotations(obj).get(SNAPSHOT_ARTIFACT_VERSION, "").strip() or FIRST_VERSION
