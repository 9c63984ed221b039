"""Writes the SnapshotJobs of a graph before all other objects: pods name the job that captures their engine.

The spec of a SnapshotJob cannot be changed, so only its owner, labels and annotations are kept as desired. The
reference deletes PodSnapshots with a finalizer of the graph; here the garbage collector deletes them, because they name
the graph as their owner.
"""

from dataclasses import dataclass
from typing import Any

from dynamo_shared.api import objects, snapshots
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import CHECKPOINT_DELETION_POLICY
from dynamo_shared.api.resources import POD_SNAPSHOTS, SNAPSHOT_JOBS, Resource, key_of
from dynamo_shared.kube import KubeClient, create_or_get
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder.errors import NameTaken
from dynamo_pod_builder.reconcilers.graph.observed import Observed
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.reconcilers.pod_snapshot import known_owners, owners_of
from dynamo_pod_builder.reconcilers.refusals import REFUSALS, failure_of
from dynamo_pod_builder.reconcilers.writes import all_written
from dynamo_pod_builder.status.component import Failure


@dataclass(frozen=True, slots=True)
class Captures:
    """The SnapshotJobs of graphs, and the PodSnapshots that they have taken."""

    kube: KubeClient
    cache: ObjectCache

    async def write(self, plan: Plan, observed: Observed) -> tuple[bool, Failure | None]:
        """Write the desired SnapshotJobs. Raises KubeError if the API server is unavailable.

        Returns whether any was created, in which case the plan must be made again to include it; and the failure if one
        was refused.
        """
        created: list[str] = []
        try:
            await all_written(self._have(desired, observed, created) for desired in plan.captures)
        except REFUSALS as error:
            return bool(created), failure_of(error)
        return bool(created), None

    async def _have(self, desired: KubeObject, observed: Observed, created: list[str]) -> None:
        job = observed.checkpoints.jobs.get(objects.name(desired))
        if job is None:
            job = await self._create(desired)
            if snapshots.owner_uid(job) != objects.uid(observed.graph):
                raise NameTaken(SNAPSHOT_JOBS, job)
            created.append(objects.name(job))
        if snapshots.owner_uid(job) == objects.uid(observed.graph):
            await self._keep(SNAPSHOT_JOBS, job, _difference(job, desired, _owners(job, desired, observed.graph)))
            await self._keep_snapshot(job, desired, observed)

    async def _create(self, desired: KubeObject) -> KubeObject:
        # CRDs of SnapshotJobs need not keep the metadata of a pod; with the reference it is dropped, too.
        stored = await create_or_get(self.kube, SNAPSHOT_JOBS, desired, strict=False)
        self.cache.put(SNAPSHOT_JOBS, stored)
        return stored

    async def _keep_snapshot(self, job: KubeObject, desired: KubeObject, observed: Observed) -> None:
        """Set the owners and the deletion policy of a job's PodSnapshot: it is deleted with the graph, or stays."""
        snapshot = observed.checkpoints.snapshots.get(snapshots.snapshot_name(job))
        if snapshot is None or not snapshots.is_taken_by(job, snapshot):
            return
        if snapshots.owner_uid(snapshot) == objects.uid(observed.graph):
            policy = objects.annotations(desired)[CHECKPOINT_DELETION_POLICY]
            desired_ = {"metadata": {"annotations": {CHECKPOINT_DELETION_POLICY: policy}}}
            owners = owners_of(snapshot, policy, objects.name(observed.graph))
            await self._keep(POD_SNAPSHOTS, snapshot, _difference(snapshot, desired_, owners))

    async def _keep(self, resource: Resource, existing: KubeObject, metadata: dict[str, Any]) -> None:
        if metadata and not objects.is_deleting(existing):
            patch = {"metadata": {**metadata, "resourceVersion": existing["metadata"]["resourceVersion"]}}
            self.cache.put(resource, await self.kube.merge_patch(resource, key_of(existing), patch))


def _owners(job: KubeObject, desired: KubeObject, graph: KubeObject) -> list[KubeObject]:
    others = [each for each in known_owners(job) if each["uid"] != objects.uid(graph)]
    return [*others, *desired["metadata"].get("ownerReferences", ())]


def _difference(existing: KubeObject, desired: KubeObject, owners: list[KubeObject]) -> dict[str, Any]:
    """Which labels, annotations and owners differ from the desired ones."""
    known = existing["metadata"]
    changed: dict[str, Any] = {}
    for name, value in desired["metadata"].items():
        if name in ("labels", "annotations"):
            different = {key: each for key, each in value.items() if (known.get(name) or {}).get(key) != each}
            changed |= {name: different} if different else {}
    return changed if known_owners(existing) == owners else {**changed, "ownerReferences": owners}
