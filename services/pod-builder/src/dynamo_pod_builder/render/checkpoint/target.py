"""A checkpoint from which pods start, and the storage of its files."""

from collections.abc import Sequence
from dataclasses import dataclass

from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import (
    SNAPSHOT_ARTIFACT_VERSION,
    SNAPSHOT_STORAGE_BASE_PATH,
    SNAPSHOT_STORAGE_TYPE,
    SNAPSHOT_TARGET_CONTAINERS,
)

PVC = "pvc"


@dataclass(frozen=True, slots=True)
class Storage:
    """A claim and the directory at which pods mount it; checkpoints are in subdirectories."""

    claim: str
    base_path: str

    def location(self, identity_hash: str, version: str) -> str:
        """Directory of one version of a checkpoint's files."""
        return f"{self.base_path.rstrip('/')}/{identity_hash}/versions/{version}"

    @property
    def annotations(self) -> dict[str, str]:
        """Annotations for the snapshot agent."""
        return {SNAPSHOT_STORAGE_TYPE: PVC, SNAPSHOT_STORAGE_BASE_PATH: self.base_path}


@dataclass(frozen=True, slots=True)
class Restore:
    """A checkpoint from which pods start."""

    identity_hash: str
    version: str
    storage: Storage
    #: Seccomp profile of the node, or "".
    profile: str = ""

    @property
    def labels(self) -> dict[str, str]:
        """Labels by which the agent selects the pods."""
        return {labels.RESTORE_TARGET: "true", labels.CHECKPOINT_ID: self.identity_hash}

    def annotations(self, containers: Sequence[str]) -> dict[str, str]:
        """Annotations that say what the agent restores, and into which containers."""
        return {
            SNAPSHOT_ARTIFACT_VERSION: self.version,
            SNAPSHOT_TARGET_CONTAINERS: ",".join(containers),
            **self.storage.annotations,
        }
