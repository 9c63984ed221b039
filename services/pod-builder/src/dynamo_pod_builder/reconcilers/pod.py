"""One pod: if a rank of an engine ended, the others are deleted; pods of a topology policy get a label of their node.

An engine with an ended rank is replaced as a whole: the other ranks would wait for that rank and keep its lock and its
GPUs. Its pods are never restarted in place (`restartPolicy: Never`), so they are deleted, Grove makes new ones, and the
new pods wait for the engine that serves meanwhile.
"""

from dataclasses import dataclass, field

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import NODES, PODS, ObjectKey, key_of
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import Conflict, Forbidden, Invalid, KubeError, NotFound
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.state.cache import ObjectCache
from dynamo_shared.state.memory import ObjectMemory

from dynamo_pod_builder import events
from dynamo_pod_builder.cohorts import cohort, engine_has_ended
from dynamo_pod_builder.node_labels import is_of_policy, lacking

#: Nodes are not watched: how soon a node is read again that lacks the label or may not be read. A graph may also be
#: created after its pods. Seconds.
RECHECK_AFTER = 60.0


@dataclass(slots=True)
class PodReconciler:
    """Replaces an engine with an ended rank, and copies a label of its node to a pod."""

    cache: ObjectCache
    kube: KubeClient
    announcer: Announcer
    #: Uids of deleted pods that remain because other controllers hold finalizers on them.
    _deleted: ObjectMemory[bool] = field(init=False)

    def __post_init__(self) -> None:
        self._deleted = self.cache.memory()

    async def reconcile(self, key: ObjectKey) -> Result:
        """Reconcile one pod. Raises KubeError if the API server is unavailable: the queue retries the key."""
        pod = self.cache.get(PODS, key)
        if pod is not None and engine_has_ended(pod):
            await self._replace_engine(pod)
        elif pod is not None and (label := lacking(pod)):
            return await self._copy_label(pod, label)
        return Result()

    async def _replace_engine(self, pod: KubeObject) -> None:
        if objects.uid(pod) in self._deleted:
            # All its other pods were deleted with it: users set these labels, and thousands of pods may have the same.
            return
        members = cohort(self.cache, pod)
        self.announcer.announce(pod, events.engine_ended(pod, members))
        refused: list[KubeError] = []
        # The ended pod goes last: after an interruption it leads to the remaining members.
        for member in sorted(members, key=engine_has_ended):
            metadata = member["metadata"]
            if metadata["uid"] in self._deleted or (refused and engine_has_ended(member)):
                continue
            try:
                # Processes that wait for a missing rank do not react to a signal in time.
                await self.kube.delete(PODS, key_of(member), uid=metadata["uid"], grace=0)
            except (NotFound, Conflict):
                pass
            except (Invalid, Forbidden) as error:
                refused.append(error)
                continue
            if metadata.get("finalizers"):
                self._deleted.keep(member, True)
            else:
                self.cache.remove(PODS, key_of(member), metadata["uid"])
        if refused:
            raise refused[0]

    async def _copy_label(self, pod: KubeObject, label: str) -> Result:
        if not is_of_policy(self.cache, pod, label):
            return Result(requeue_after=RECHECK_AFTER)
        node = pod["spec"]["nodeName"]
        try:
            value = (await self.kube.get(NODES, ObjectKey("", node)))["metadata"].get("labels", {}).get(label)
        except NotFound:
            value = None
        except Forbidden as error:
            self.announcer.announce(pod, events.label_of_node_missing(node, label, str(error)))
            return Result(requeue_after=RECHECK_AFTER)
        if value is None:
            self.announcer.announce(pod, events.label_of_node_missing(node, label))
            return Result(requeue_after=RECHECK_AFTER)
        patch = {"metadata": {"uid": pod["metadata"]["uid"], "labels": {label: value}}}
        try:
            # The cache gets the change from its event: the answer is not trimmed, and may contain other changes.
            await self.kube.merge_patch(PODS, key_of(pod), patch)
        except (NotFound, Conflict):
            # Deleted, or replaced by another pod of the same name, which has its own event.
            return Result()
        except (Invalid, Forbidden) as error:
            self.announcer.announce(pod, events.label_of_node_missing(node, label, str(error)))
            return Result(requeue_after=RECHECK_AFTER)
        return Result()
