"""One pod: an engine that has ended takes its others with it, and a pod of a policy gets the label of its node.

An engine of which one rank ended is replaced whole: the others would wait for that rank, holding its lock and its GPUs. Its pods
are never restarted in place (`restartPolicy: Never`), so this is how they come back: they are deleted, Grove makes new ones, and
those wait for the engine that serves meanwhile.
"""

import contextlib
from dataclasses import dataclass, field

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import NODES, PODS, ObjectKey, key_of
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import Conflict, Forbidden, Invalid, NotFound
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder import events
from dynamo_pod_builder.cohorts import cohort, engine_has_ended
from dynamo_pod_builder.node_labels import is_of_policy, lacking

#: Nodes are not watched here: how soon one is asked again that has no such label, or may not be read. A graph may come later
#: than its pods, too. Seconds.
ASK_AGAIN = 60.0


@dataclass(slots=True)
class PodReconciler:
    """Replaces an engine of which a rank has ended, and copies a label of its node to a pod."""

    cache: ObjectCache
    kube: KubeClient
    announcer: Announcer
    #: Uids of pods that are deleted, and stay while others have finalizers on them.
    _deleted: dict[str, bool] = field(init=False)

    def __post_init__(self) -> None:
        self._deleted = self.cache.memory()

    async def reconcile(self, key: ObjectKey) -> Result:
        """One reconcile of one pod. Raises KubeError where the API server is away: the queue retries."""
        pod = self.cache.get(PODS, key)
        if pod is not None and engine_has_ended(pod):
            await self._replace_engine(pod)
        elif pod is not None and (label := lacking(pod)):
            return await self._copy_label(pod, label)
        return Result()

    async def _replace_engine(self, pod: KubeObject) -> None:
        if objects.uid(pod) in self._deleted:
            # With all others: their labels are the author's, and thousands may have the same.
            return
        members = cohort(self.cache, pod)
        self.announcer.announce(pod, events.engine_ended(pod, members))
        # The one that ended goes last: after an interruption it leads to the members that are left.
        for member in sorted(members, key=engine_has_ended):
            metadata = member["metadata"]
            if metadata["uid"] in self._deleted:
                continue
            with contextlib.suppress(NotFound, Conflict):
                # Processes that wait for a rank that is gone end by no signal in time.
                await self.kube.delete(PODS, key_of(member), uid=metadata["uid"], grace=0)
            if metadata.get("finalizers"):
                self._deleted[metadata["uid"]] = True
            else:
                self.cache.remove(PODS, key_of(member), metadata["uid"])

    async def _copy_label(self, pod: KubeObject, label: str) -> Result:
        if not is_of_policy(self.cache, pod, label):
            return Result(requeue_after=ASK_AGAIN)
        node = pod["spec"]["nodeName"]
        try:
            value = (await self.kube.get(NODES, ObjectKey("", node)))["metadata"].get("labels", {}).get(label)
        except NotFound:
            value = None
        except Forbidden as error:
            self.announcer.announce(pod, events.label_of_node_missing(node, label, str(error)))
            return Result(requeue_after=ASK_AGAIN)
        if value is None:
            self.announcer.announce(pod, events.label_of_node_missing(node, label))
            return Result(requeue_after=ASK_AGAIN)
        patch = {"metadata": {"uid": pod["metadata"]["uid"], "labels": {label: value}}}
        try:
            # The cache learns of it by its event: the answer is not trimmed, and what else it has may be news.
            await self.kube.merge_patch(PODS, key_of(pod), patch)
        except (NotFound, Conflict):
            # Gone, or another pod of its name: which comes with an event of its own.
            return Result()
        except (Invalid, Forbidden) as error:
            self.announcer.announce(pod, events.label_of_node_missing(node, label, str(error)))
            return Result(requeue_after=ASK_AGAIN)
        return Result()
