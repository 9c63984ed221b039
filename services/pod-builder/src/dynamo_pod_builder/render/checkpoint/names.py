"""Names of the objects of a checkpoint, and names that the snapshot agent knows."""

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import SNAPSHOT_ARTIFACT_VERSION
from dynamo_shared.api.snapshots import CONTROL_PATH

FIRST_VERSION = "1"

#: The file that a container to be checkpointed creates for the agent.
READY_FOR_CHECKPOINT = f"{CONTROL_PATH}/ready-for-checkpoint"
#: Volume of the storage for checkpoints.
STORAGE = "checkpoint-storage"
#: Volume from which a restored process learns in which pod it now runs.
POD_INFO = "podinfo"
POD_INFO_PATH = "/etc/podinfo"


def checkpoint(identity_hash: str) -> str:
    """The DynamoCheckpoint that is created for components that name only an identity."""
    return f"checkpoint-{identity_hash}"


def job(identity_hash: str, version: str) -> str:
    """The Job that takes a checkpoint; another version of the files has another Job."""
    return f"checkpoint-job-{identity_hash}-{version}"


def version_of(obj: KubeObject) -> str:
    """Version of a checkpoint's files, from the annotation of its DynamoCheckpoint."""
    return objects.annotations(obj).get(SNAPSHOT_ARTIFACT_VERSION, "").strip() or FIRST_VERSION
