"""One PodSnapshot that was taken for a graph: it goes with the graph, or stays, as it says itself.

A reconcile of the graph is about what its components start from now. But a capture takes minutes: meanwhile the component may
have changed, the graph may be gone, or no one was there to notice its end. The garbage collector deletes a PodSnapshot once
all owners that it names are gone, also where they were gone before it named them.
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
    """Has PodSnapshots name the graph that they go with."""

    cache: ObjectCache
    kube: KubeClient

    async def reconcile(self, key: ObjectKey) -> Result:
        """One reconcile of one PodSnapshot. Raises KubeError where it has changed, or the API server is away: try again."""
        snapshot = self.cache.get(POD_SNAPSHOTS, key)
        if snapshot is None or objects.is_deleting(snapshot):
            return Result()
        owners = owners_of(snapshot, _policy(snapshot), _graph(snapshot))
        if owners == known_owners(snapshot):
            return Result()
        # Of that version: what it says of its graph may change meanwhile.
        metadata = {"ownerReferences": owners, "resourceVersion": snapshot["metadata"]["resourceVersion"]}
        try:
            self.cache.put(POD_SNAPSHOTS, await self.kube.merge_patch(POD_SNAPSHOTS, key, {"metadata": metadata}))
        except NotFound:
            return Result()
        except (Invalid, Forbidden) as error:
            # Another try mends nothing, and it has no status of this platform.
            log.warning("a PodSnapshot cannot name the graph that it goes with", key=str(key), error=str(error))
        return Result()


def owners_of(snapshot: KubeObject, policy: str, graph: str) -> list[KubeObject]:
    """The owners that a PodSnapshot is to have, `graph` among them or not. Of one that was not taken for a graph all stay."""
    uid, known = snapshots.owner_uid(snapshot), known_owners(snapshot)
    if not uid or not graph:
        return known
    others = [each for each in known if each["uid"] != uid]
    if policy == snapshots.RETAIN:
        return others
    # By any name: labels are anyone's to write, and two that write one after the other would not come to an end.
    if policy == snapshots.DELETE and len(others) == len(known):
        return [*known, owner_reference(DYNAMO_GRAPH_DEPLOYMENTS, graph, uid)]
    return known


def known_owners(obj: KubeObject) -> list[KubeObject]:
    """The owners that an object has."""
    return list(obj["metadata"].get("ownerReferences") or ())


def changes_owner(change: CacheChange) -> bool:
    """Whether a PodSnapshot is new, or says otherwise what it goes with."""
    return change.new is not None and (change.old is None or _says(change.old) != _says(change.new))


def _says(snapshot: KubeObject) -> tuple[object, ...]:
    owner = snapshots.owner_uid(snapshot)
    return objects.uid(snapshot), owner, _policy(snapshot), _graph(snapshot), known_owners(snapshot)


def _policy(snapshot: KubeObject) -> str:
    return objects.annotations(snapshot).get(annotations.CHECKPOINT_DELETION_POLICY, "")


def _graph(snapshot: KubeObject) -> str:
    return objects.labels(snapshot).get(labels.GRAPH_DEPLOYMENT_NAME, "")
