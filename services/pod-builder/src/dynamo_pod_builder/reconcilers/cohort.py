"""An engine of which one rank ended is replaced whole: the others would wait for that rank, holding its lock and its GPUs.

Its pods are never restarted in place (`restartPolicy: Never`), so this is how they come back: they are deleted, Grove
makes new ones, and those wait for the engine that serves meanwhile.
"""

import contextlib
from dataclasses import dataclass

from dynamo_shared.api.resources import PODS, ObjectKey, key_of
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import Conflict, NotFound
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder import events
from dynamo_pod_builder.cohorts import cohort, engine_has_ended


@dataclass(frozen=True, slots=True)
class CohortReconciler:
    """Deletes the pods of an engine that has ended."""

    cache: ObjectCache
    kube: KubeClient
    announcer: Announcer

    async def reconcile(self, key: ObjectKey) -> Result:
        """Reconcile one pod. Raises KubeError where the API server is away: the queue retries."""
        pod = self.cache.get(PODS, key)
        if pod is None or not engine_has_ended(pod):
            return Result()
        members = cohort(self.cache, pod)
        self.announcer.announce(pod, events.engine_ended(pod, members))
        # The one that ended goes last: after an interruption it leads to the members that are left.
        for member in sorted(members, key=engine_has_ended):
            metadata = member["metadata"]
            with contextlib.suppress(NotFound, Conflict):
                # Processes that wait for a rank that is gone end by no signal in time.
                await self.kube.delete(PODS, key_of(member), uid=metadata["uid"], grace=0)
            if not metadata.get("finalizers"):
                self.cache.remove(PODS, key_of(member), metadata["uid"])
        return Result()
