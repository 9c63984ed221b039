"""Pods that get a label of their node, selected by their annotation and the policy of their graph.

Pure, except for the index of the cache.
"""

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import has_ended
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import TOPOLOGY_LABEL_KEY
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, PODS, ObjectKey
from dynamo_shared.state.cache import ObjectCache

LACKING_INDEX = "lacks-label-of-node"


def index(cache: ObjectCache) -> None:
    """Index the cache's pods by whether they lack the label of their node."""
    cache.add_index(PODS, LACKING_INDEX, lambda pod: (LACKING_INDEX,) if lacking(pod) else ())


def waiting(cache: ObjectCache) -> list[ObjectKey]:
    """Pods that lack the label of their node."""
    return [key for _, key in cache.indexed(PODS, LACKING_INDEX)]


def lacking(pod: KubeObject) -> str:
    """The label of its node that a pod of a graph still lacks; "" if it lacks none, or has no node yet."""
    present = objects.labels(pod)
    label = objects.annotations(pod).get(TOPOLOGY_LABEL_KEY, "")
    if not label or label in present or not pod.get("spec", {}).get("nodeName"):
        return ""
    of_graph = labels.GRAPH_DEPLOYMENT_NAME in present and labels.COMPONENT in present
    return label if of_graph and not (has_ended(pod) or objects.is_deleting(pod)) else ""


def is_of_policy(cache: ObjectCache, pod: KubeObject, label: str) -> bool:
    """Whether a pod's graph has this label in its policy. A user who may create pods can write any annotation."""
    name = objects.labels(pod).get(labels.GRAPH_DEPLOYMENT_NAME, "")
    graph = cache.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(objects.namespace(pod), name)) or {}
    experimental = graph.get("spec", {}).get("experimental") or {}
    return (experimental.get("kvTransferPolicy") or {}).get("labelKey") == label
