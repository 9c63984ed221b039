"""The pods of a component, counted like autoscalers count them, and the selector for them.

A graph may have ten thousand pods, and reading them takes most of a second. So indexes say which pods count, which wait
for a node, and which have claims of their own.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial

from dynamo_shared.api import gpus, objects
from dynamo_shared.api.component_names import LEADERS
from dynamo_shared.api.device_claims import created_for
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import is_active, unschedulable
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import PODS, ObjectKey
from dynamo_shared.state import ObjectCache

BY_COMPONENT = "component"
#: Indexes of some pods of a component: those that count as replicas, that wait for a node, and that have their own claims.
_THERE, _WAITING, _CLAIMING = "there", "waiting", "claiming"
_METADATA = frozenset(
    {"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "labels"}
    | {"ownerReferences"}
)
_SPEC = frozenset({"nodeName", "resourceClaims"})
_STATUS = frozenset({"phase", "conditions", "resourceClaimStatuses"})
LEADER = "leader"


def index(cache: ObjectCache) -> None:
    """Index pods by their component, and trim them, because there are many."""
    cache.keep_only(PODS, kept)
    kinds: tuple[tuple[str, Callable[[KubeObject], object]], ...] = (
        (BY_COMPONENT, lambda _: True),
        (_THERE, is_active),
        (_WAITING, lambda pod: is_active(pod) and unschedulable(pod)),
        (_CLAIMING, created_for),
    )
    for name, counts in kinds:
        cache.add_index(PODS, name, partial(_places, counts))


def _places(counts: Callable[[KubeObject], object], pod: KubeObject) -> list[str]:
    return [place] if (place := _place(pod)) and counts(pod) else []


def kept(pod: KubeObject) -> KubeObject:
    """A pod with only the fields that this service reads."""
    return {
        **{name: value for name, value in pod.items() if name in ("apiVersion", "kind")},
        "metadata": {name: value for name, value in pod["metadata"].items() if name in _METADATA},
        "spec": {name: value for name, value in pod.get("spec", {}).items() if name in _SPEC},
        "status": {name: value for name, value in pod.get("status", {}).items() if name in _STATUS},
    }


def with_claims(cache: ObjectCache, namespace: str, graph: str, component: str) -> list[KubeObject]:
    """Pods of a component that have claims of their own, in any phase."""
    return cache.by_index(PODS, _CLAIMING, f"{namespace}/{graph}/{component}")


def waiting(cache: ObjectCache, namespace: str, graph: str, component: str) -> Collection[ObjectKey]:
    """Keys of the pods of a component that wait for a node."""
    return cache.keys_by_index(PODS, _WAITING, f"{namespace}/{graph}/{component}")


async def counted(cache: ObjectCache, graph: KubeObject, component: KubeObject) -> tuple[int, str]:
    """The existing replicas of a component, and the selector for its pods."""
    place = f"{objects.namespace(graph)}/{objects.name(graph)}/{component['name']}"
    if not _has_several(component):
        return len(cache.keys_by_index(PODS, _THERE, place)), selector(graph, component)
    its_pods = await cache.read_by_index(PODS, BY_COMPONENT, place)
    return replicas(graph, component, its_pods), selector(graph, component, its_pods)


def graph_of(pod: KubeObject) -> ObjectKey:
    """The graph of a pod; a key with an empty name if it has none."""
    return ObjectKey(objects.namespace(pod), objects.labels(pod).get(labels.GRAPH_DEPLOYMENT_NAME, ""))


def selector(graph: KubeObject, component: KubeObject, pods: Sequence[KubeObject] = ()) -> str:
    """The selector for one pod of each replica: if a replica has several `pods`, the serving one, if labels show it.

    An HPA multiplies by the number of selected pods: all pods of replicas on two nodes would double the replicas.
    """
    terms = [f"{labels.COMPONENT}={component['name']}", f"{labels.GRAPH_DEPLOYMENT_NAME}={graph['metadata']['name']}"]
    if any(labels.ROLE in objects.labels(pod) for pod in pods):
        terms.append(f"{labels.ROLE}={LEADER}")
    # Pods of Grove have no role label, and the serving pods are separate cliques.
    elif serving := sorted({clique for pod in pods if (clique := _clique(pod)).endswith(_serving(component))}):
        terms.append(f"{labels.GROVE_POD_CLIQUE} in ({','.join(serving)})")
    return ",".join(terms)


def _clique(pod: KubeObject) -> str:
    return str(objects.labels(pod).get(labels.GROVE_POD_CLIQUE, ""))


def _serving(component: KubeObject) -> str:
    """Suffixes of the names of serving cliques: leaders, or the engines of one node whose GPU memory another clique
    holds.
    """
    return f"-{LEADERS}" if gpus.nodes(component) > 1 else f"-{component['name'].lower()}"


def replicas(graph: KubeObject, component: KubeObject, pods: Sequence[KubeObject]) -> int:
    """The existing replicas with several pods; the count of the graph's status if no pod represents them."""
    if gpus.nodes(component) > 1 and any(labels.ROLE in objects.labels(pod) for pod in pods):
        return sum(objects.labels(pod).get(labels.ROLE) == LEADER for pod in pods if is_active(pod))
    counted = graph.get("status", {}).get("components", {}).get(component["name"], {})
    return int(counted.get("replicas", 0))


def _has_several(component: KubeObject) -> bool:
    """Whether a replica has several pods: one on each node, or engines next to a pod that holds their memory."""
    memory = (component.get("experimental") or {}).get("gpuMemoryService") or {}
    return gpus.nodes(component) > 1 or str(memory.get("mode", "")).lower() == "interpod"


def _place(pod: KubeObject) -> str:
    pod_labels = objects.labels(pod)
    graph, component = pod_labels.get(labels.GRAPH_DEPLOYMENT_NAME), pod_labels.get(labels.COMPONENT)
    return f"{objects.namespace(pod)}/{graph}/{component}" if graph and component else ""
