"""Engines whose pods fail over together: the pods, one per rank, of one engine across several nodes."""

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import has_ended
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import POD_CLIQUE_SCALING_GROUPS, PODS, ObjectKey
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder.pods import WORKLOAD_INDEX, index_value

#: Labels that the pods of one engine share, within their scaling group.
_SAME = (labels.GROVE_SCALING_GROUP_REPLICA, labels.GROVE_POD_INDEX)
ENDED_INDEX = "ended"


def index(cache: ObjectCache) -> None:
    """Index the cache's pods by whether they have ended."""
    cache.add_index(PODS, ENDED_INDEX, lambda pod: (ENDED_INDEX,) if engine_has_ended(pod) else ())


def ended(cache: ObjectCache) -> list[ObjectKey]:
    """Pods that have ended, whose cohort may have to end, too."""
    return [key for _, key in cache.indexed(PODS, ENDED_INDEX)]


def engine_has_ended(pod: KubeObject) -> bool:
    """Whether a pod belongs to an engine that fails over to another, and has ended."""
    pod_labels = objects.labels(pod)
    return labels.FAILOVER_ENGINE_GROUP_MEMBER in pod_labels and has_ended(pod)


def cohort(cache: ObjectCache, pod: KubeObject) -> list[KubeObject]:
    """All pods of a pod's engine, including the pod itself, without the servers of its memory."""
    pod_labels = objects.labels(pod)
    group = pod_labels.get(labels.GROVE_SCALING_GROUP)
    if not group or any(label not in pod_labels for label in _SAME):
        return [pod]
    members = index_value(POD_CLIQUE_SCALING_GROUPS.kind, ObjectKey(objects.namespace(pod), group))
    return [
        each
        for each in cache.by_index(PODS, WORKLOAD_INDEX, members)
        if labels.FAILOVER_ENGINE_GROUP_MEMBER in objects.labels(each)
        and all(objects.labels(each).get(label) == pod_labels[label] for label in _SAME)
    ]
