"""Events of checkpoints."""

from collections.abc import Mapping
from typing import Any

import msgspec

from dynamo_shared.wire.specifications.base import EventFamily, EventSpec, Int64

CHECKPOINT = "dynamocheckpoint"


class CheckpointData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A DynamoCheckpoint as it was when the event happened."""

    name: str
    namespace: str
    phase: str = ""
    """as in its status"""
    reason: str = ""
    message: str = ""
    generation: Int64 = "0"
    identity_hash: str = ""
    """hash of its identity, by which pods select it"""
    model: str = ""
    """model of its identity"""
    backend_framework: str = ""
    job_name: str = ""
    """Job that takes the checkpoint"""
    location: str = ""
    """path in its storage"""


def checkpoint_data(checkpoint: dict[str, Any], status: Mapping[str, Any], reason: str) -> CheckpointData:
    """Data of a checkpoint event from a DynamoCheckpoint, its new status and the reason for it."""
    metadata = checkpoint["metadata"]
    identity = checkpoint.get("spec", {}).get("identity", {})
    return CheckpointData(
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
        phase=status.get("phase", ""),
        reason=reason,
        message=status.get("message", ""),
        generation=str(metadata.get("generation", 0)),
        identity_hash=status.get("identityHash", ""),
        model=identity.get("model", ""),
        backend_framework=identity.get("backendFramework", ""),
        job_name=status.get("jobName", ""),
        location=status.get("location", ""),
    )


_checkpoint = EventFamily("checkpoint", CHECKPOINT, "pod-builder", CheckpointData)

EVENTS: tuple[EventSpec, ...] = (
    _checkpoint("creating", "A Job starts the engine, so that the snapshot agent can checkpoint it."),
    _checkpoint("ready", "The checkpoint is complete; pods can be restored from it."),
    _checkpoint("failed", "The checkpoint failed; see reason and message."),
)
