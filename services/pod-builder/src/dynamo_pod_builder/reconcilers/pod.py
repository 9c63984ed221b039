"""One pod: an engine that has ended takes its others with it, and a pod of a policy gets the label of its node."""

from dataclasses import dataclass

from dynamo_shared.api.resources import NODES, PODS, ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import Conflict, Forbidden, Invalid, NotFound
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder import events
from dynamo_pod_builder.node_labels import is_of_policy, lacking
from dynamo_pod_builder.reconcilers.cohort import CohortReconciler

#: Nodes are not watched here: how soon one is asked again that has no such label, or may not be read. A graph may come later
#: than its pods, too. Seconds.
ASK_AGAIN = 60.0


@dataclass(frozen=True, slots=True)
class PodReconciler:
    """Replaces an engine of which a rank has ended, and copies a label of its node to a pod."""

    cache: ObjectCache
    kube: KubeClient
    announcer: Announcer
    cohorts: CohortReconciler

    async def reconcile(self, key: ObjectKey) -> Result:
        """One reconcile of one pod. Raises KubeError where the API server is away: the queue retries."""
        pod = self.cache.get(PODS, key)
        if pod is None or not (label := lacking(pod)):
            return await self.cohorts.reconcile(key)
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
            await self.kube.merge_patch(PODS, key, patch)
        except (NotFound, Conflict):
            # Gone, or another pod of its name: which comes with an event of its own.
            return Result()
        except (Invalid, Forbidden) as error:
            self.announcer.announce(pod, events.label_of_node_missing(node, label, str(error)))
            return Result(requeue_after=ASK_AGAIN)
        return Result()
