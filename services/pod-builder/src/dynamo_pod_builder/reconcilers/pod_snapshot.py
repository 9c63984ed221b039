"""One PodSnapshot that was taken for a graph: its deletion policy says whether it is deleted with the graph.

A reconcile of the graph handles what its components start from now. But a capture takes minutes: meanwhile the
component may have changed, the graph may be deleted, or the pod-builder may not run when the capture ends. The garbage
collector deletes a PodSnapshot when all owners that it names are deleted, even if they were deleted before it named
them.
"""

from dataclasses import dataclass

import structlog
from dynamo_shared.api import objects, snapshots
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import annotations, labels
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, POD_SNAPSHOTS, ObjectKey, owner_reference
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import Forbidden, Invalid, NotFound
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.routes import CacheChange
from dynamo_shared.state.cache import ObjectCache

log = structlog.get_logger("dynamo.pod-builder")


@dataclass(frozen=True, slots=True)
class PodSnapshotReconciler:
    """Makes each PodSnapshot name as its owner the graph with which it is deleted."""

    cache: ObjectCache
    kube: KubeClient

    async def reconcile(self, key: ObjectKey) -> Result:
        """Reconcile one PodSnapshot. Raises KubeError if it changed or the API server is unavailable: the queue retries
        it.
        """
        snapshot = self.cache.get(POD_SNAPSHOTS, key)
        if snapshot is None or objects.is_deleting(snapshot):
            return Result()
        owners = owners_of(snapshot, _policy(snapshot), _graph(snapshot))
        if owners == known_owners(snapshot):
            return Result()
        # Only this version is patched: the labels and annotations that name the graph may change meanwhile.
        metadata = {"ownerReferences": owners, "resourceVersion": snapshot["metadata"]["resourceVersion"]}
        try:
            self.cache.put(POD_SNAPSHOTS, await self.kube.merge_patch(POD_SNAPSHOTS, key, {"metadata": metadata}))
        except NotFound:
            return Result()
        except (Invalid, Forbidden) as error:
            # Another try would not help, and a PodSnapshot has no status that this platform writes.
            log.warning("cannot write the owner references of a PodSnapshot", key=str(key), error=str(error))
        return Result()


def owners_of(snapshot: KubeObject, policy: str, graph: str) -> list[KubeObject]:
    """The desired owners of a PodSnapshot, with or without `graph`; unchanged if it was not taken for a graph."""
    uid, known = snapshots.owner_uid(snapshot), known_owners(snapshot)
    if not uid or not graph:
        return known
    others = [each for each in known if each["uid"] != uid]
    if policy == snapshots.RETAIN:
        return others
    # The name is not compared: any client may write labels, and two such writers would cause endless changes.
    if policy == snapshots.DELETE and len(others) == len(known):
        return [*known, owner_reference(DYNAMO_GRAPH_DEPLOYMENTS, graph, uid)]
    return known


def known_owners(obj: KubeObject) -> list[KubeObject]:
    """The owners of an object."""
    return list(obj["metadata"].get("ownerReferences") or ())


def changes_owner(change: CacheChange) -> bool:
    """Whether a PodSnapshot is new, or has changed what it says about its owner."""
    return change.new is not None and (change.old is None or _says(change.old) != _says(change.new))


def _says(snapshot: KubeObject) -> tuple[object, ...]:
    owner = snapshots.owner_uid(snapshot)
    return objects.uid(snapshot), owner, _policy(snapshot), _graph(snapshot), known_owners(snapshot)


def _policy(snapshot: KubeObject) -> str:
    return objects.annotations(snapshot).get(annotations.CHECKPOINT_DELETION_POLICY, "")


def _graph(snapshot: KubeObject) -> str:
    return objects.labels(snapshot).get(labels.GRAPH_DEPLOYMENT_NAME, "")
