"""Names of what belongs to a checkpoint, and what the snapshot agent knows it by."""

from collections.abc import Mapping
from typing import Any

from dynamo_shared.api.registry.annotations import SNAPSHOT_ARTIFACT_VERSION

FIRST_VERSION = "1"

#: Where a container and the agent leave each other signs, and the signs.
CONTROL = "snapshot-control"
CONTROL_PATH = "/snapshot-control"
READY_FOR_CHECKPOINT = f"{CONTROL_PATH}/ready-for-checkpoint"
RESTORE_COMPLETE = f"{CONTROL_PATH}/restore-complete"
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


def version_of(obj: Mapping[str, Any]) -> str:
    """Version of a checkpoint's files, by the annotation of its DynamoCheckpoint."""
    text = obj["metadata"].get("annotations", {}).get(SNAPSHOT_ARTIFACT_VERSION, "")
    return str(text).strip() or FIRST_VERSION
