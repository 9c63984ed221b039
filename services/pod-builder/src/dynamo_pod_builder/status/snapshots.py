"""A graph's condition about the PodSnapshots of the Snapshot operator that its components start from. Pure."""

from collections.abc import Mapping
from datetime import datetime

from dynamo_shared.api.conditions import Condition, condition_of
from dynamo_shared.api.objects import KubeObject

from dynamo_pod_builder.snapshot_starts import READY, REASONS, SnapshotStart

CHECKPOINTS_READY = "CheckpointsReady"


def checkpoints_condition(graph: KubeObject, starts: Mapping[str, SnapshotStart], now: datetime) -> Condition:
    """True if pods can start from all of them; otherwise with the most serious reason, and all messages that have it."""
    reason = min((each.reason for each in starts.values()), key=REASONS.index)
    words = [f"{name}: {each.message}" for name, each in sorted(starts.items()) if each.reason == reason]
    return condition_of(graph, CHECKPOINTS_READY, reason == READY, reason, "; ".join(words), now=now)
