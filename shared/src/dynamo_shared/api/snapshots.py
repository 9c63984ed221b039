"""PodSnapshots: captured engines that NVIDIA's Snapshot operator restores in pods, and which pods may use one. Pure.

The source of the rules is Dynamo 1.5 (github.com/ai-dynamo/dynamo, deploy/operator: `internal/checkpoint/native.go`,
`podspec.go`, `compatibility.go`, `internal/webhook/mutation/pod_checkpoint_restore_handler.go`,
`internal/consts/consts.go`) and Snapshot 0.1.0 (github.com/ai-dynamo/snapshot: `api/v1alpha1/podsnapshot_types.go`,
`snapshotjob_types.go`):

1. A SnapshotJob runs a pod once, and creates a PodSnapshot of one of its containers. It ends with the condition Completed
   or Failed.
2. A PodSnapshot is of one container, `spec.source.podRef.containers`. If it is Ready, it has a PodSnapshotContent.
3. Dynamo annotates a PodSnapshot with the uid of its graph, and with a compatibility hash: only pods with the same hash
   may be restored from it.
"""

from collections.abc import Sequence
from itertools import dropwhile
from typing import Any

from dynamo_shared.api import objects
from dynamo_shared.api.embedded.rules.names import wrong_object_name
from dynamo_shared.api.engines.table import BACKENDS
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import annotations
from dynamo_shared.api.untrusted.reading import items, mapping, text

#: Version of the compatibility hash, which determines the fields that the hash covers.
VERSION = "v2"
#: Mode of the GPU memory service: none, because a PodSnapshot does not contain its memory.
NO_MEMORY_SERVICE = "disabled"
DELETE, RETAIN = "Delete", "Retain"
IMMEDIATE, WAIT = "Immediate", "WaitForCheckpoint"
#: Volume and path through which a container and Snapshot's agent signal each other.
CONTROL_VOLUME, CONTROL_PATH = "snapshot-control", "/snapshot-control"
#: The snapshot agent's container, and its volume for checkpoints, in its DaemonSet.
AGENT_CONTAINER, AGENT_VOLUME = "agent", "checkpoints"
RESTORE_COMPLETE = f"{CONTROL_PATH}/restore-complete"
#: Annotations of pods that may be restored from a PodSnapshot; they are removed from pods that are restored.
OF_CANDIDATES = (
    annotations.RESTORE_CANDIDATE,
    annotations.RESTORE_SOURCE,
    annotations.RESTORE_SOURCE_KIND,
    annotations.RESTORE_JOB_UID,
    annotations.RESTORE_SNAPSHOT_UID,
    annotations.RESTORE_SNAPSHOT_CONTENT,
    annotations.RESTORE_SNAPSHOT_GMS_MODE,
    annotations.RESTORE_SNAPSHOT_VERSION,
    annotations.RESTORE_COMPATIBILITY_HASH,
    annotations.RESTORE_TARGETS,
    annotations.RESTORE_STARTUP_POLICY,
)
#: Length limit of the name of a container. Characters.
_MAX_CONTAINER_LENGTH = 63
_COMPLETED, _FAILED, _READY = "Completed", "Failed", "Ready"
#: Options of Python without a value.
_SWITCHES = frozenset(
    {"-b", "-bb", "-B", "-d", "-E", "-i", "-I", "-O", "-OO", "-P", "-q", "-s", "-S", "-u", "-v", "-vv", "-x"}
)


def condition(obj: KubeObject, type_: str) -> KubeObject:
    """The condition of a type of a SnapshotJob or a PodSnapshot; empty without one. Accepts any content."""
    entries = map(mapping, items(mapping(obj.get("status")).get("conditions")))
    return next((each for each in entries if each.get("type") == type_), {})


def is_completed(job: KubeObject) -> bool:
    """Whether a SnapshotJob has created its PodSnapshot."""
    return condition(job, _COMPLETED).get("status") == "True"


def snapshot_name(job: KubeObject) -> str:
    """Name of the PodSnapshot that a SnapshotJob created; "" without one."""
    return _name(mapping(job.get("status")).get("podSnapshotName"))


def is_taken_by(job: KubeObject, snapshot: KubeObject) -> bool:
    """Whether a SnapshotJob created this PodSnapshot, by uid."""
    return objects.uid(snapshot) == mapping(job.get("status")).get("podSnapshotUID")


def failure_of(obj: KubeObject) -> tuple[str, str] | None:
    """Reason and message of the failure of a SnapshotJob or a PodSnapshot; None without a failure."""
    failed = condition(obj, _FAILED)
    if failed.get("status") != "True":
        return None
    return text(failed.get("reason")) or _FAILED, text(failed.get("message"))


def is_ready(snapshot: KubeObject) -> bool:
    """Whether pods can be restored from a PodSnapshot. One that is being deleted may no longer have its files."""
    return condition(snapshot, _READY).get("status") == "True" and not objects.is_deleting(snapshot)


def content_of(snapshot: KubeObject) -> str:
    """Name of the PodSnapshotContent that a PodSnapshot is bound to; "" without one."""
    return _name(mapping(snapshot.get("status")).get("boundSnapshotContentName"))


def captured_container(snapshot: KubeObject) -> str:
    """The captured container of a PodSnapshot; "" unless it has exactly one."""
    source: dict[str, Any] = mapping(mapping(mapping(snapshot.get("spec")).get("source")).get("podRef"))
    containers = source.get("containers")
    name = _name(containers[0]) if isinstance(containers, list) and len(containers) == 1 else ""
    return name if len(name) <= _MAX_CONTAINER_LENGTH else ""


def is_automatic(obj: KubeObject) -> bool:
    """Whether the platform created the SnapshotJob or PodSnapshot for a graph, without a request of a user."""
    return objects.annotations(obj).get(annotations.AUTO_CHECKPOINT) == "true"


def owner_uid(obj: KubeObject) -> str:
    """Uid of the graph for which the platform created a SnapshotJob or a PodSnapshot; "" for those of users."""
    return objects.annotations(obj).get(annotations.CHECKPOINT_OWNER_UID, "") if is_automatic(obj) else ""


def problem_of(snapshot: KubeObject, expected: str, owner: str = "") -> str:
    """Why pods with the compatibility hash `expected` must not be restored from a PodSnapshot; "" if they may, once ready.

    `owner` is the uid of the graph for an automatic PodSnapshot; "" for one that a user names in `checkpointRef`.
    """
    own = objects.annotations(snapshot)
    if (failure := failure_of(snapshot)) is not None:
        return f"failed: {': '.join(filter(None, failure))}"
    if not captured_container(snapshot):
        return "must name exactly one container in spec.source.podRef.containers"
    if not owner and is_automatic(snapshot) and own.get(annotations.CHECKPOINT_DELETION_POLICY) == RETAIN:
        return "was taken automatically for one graph and retained, and no other graph can use it: take another one"
    if owner and owner_uid(snapshot) != owner:
        return "was taken for another graph"
    if own.get(annotations.SNAPSHOT_COMPATIBILITY_VERSION) != VERSION:
        return f"has no annotation {annotations.SNAPSHOT_COMPATIBILITY_VERSION}: {VERSION}, unlike snapshots of Dynamo"
    if own.get(annotations.SNAPSHOT_COMPATIBILITY_HASH) != expected:
        return (
            "was taken of a pod that differs from this component's pods (image, command and arguments, variables, "
            "init containers, mounted volumes, GPUs, placement or security settings), or another operator took it"
        )
    if own.get(annotations.SNAPSHOT_GMS_MODE) != NO_MEMORY_SERVICE:
        return "was taken of an engine with a GPU memory service, and the platform cannot restore pods from it"
    return "is ready, but not bound to a PodSnapshotContent" if is_ready(snapshot) and not content_of(snapshot) else ""


def can_be_restored(line: Sequence[str]) -> bool:
    """Whether a command line starts an engine that can be restored: `python3 -m dynamo.<engine>`, without a shell."""
    first, *rest = [text(each) for each in line] or [""]
    python = first.rpartition("/")[2]
    if python not in ("python", "python3") and not python.startswith("python3."):
        return False
    option, module = [*dropwhile(_SWITCHES.__contains__, rest), "", ""][:2]
    return option == "-m" and module.startswith("dynamo.") and module.removeprefix("dynamo.") in BACKENDS


def _name(value: Any) -> str:
    """The value if it is a valid object name, otherwise "", because schemas allow any string, and paths contain the name."""
    name = text(value).strip()
    return "" if wrong_object_name(name) else name
