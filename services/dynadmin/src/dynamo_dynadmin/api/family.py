"""The family of an object: its children by owner references, and its pods. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from dynamo_shared.api import gpus
from dynamo_shared.api.conditions import find
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import container_statuses, has_ended
from dynamo_shared.api.registry import labels

#: Levels of a tree: graph, component, workload, set, pod, and some spare levels for objects of other controllers.
_DEPTH = 10


def tree(root: KubeObject, objects: Iterable[KubeObject], healths: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """An object with all that it owns, as nested levels. Each object is shown once, even with several owners.

    Outlines of the objects suffice, with the `health` of each by its uid.
    """
    return _node(root, _children(objects), _DEPTH, {_uid(root)}, healths)


def relatives(root: KubeObject, objects: Iterable[KubeObject]) -> list[KubeObject]:
    """All objects that an object owns. Outlines suffice: only a few of the thousands of objects in a namespace belong
    to one graph.
    """
    children = _children(objects)
    shown, level, owned = {_uid(root)}, [root], list[KubeObject]()
    for _ in range(_DEPTH):
        below = {
            _uid(each): each for owner in level for each in children.get(_uid(owner), ()) if _uid(each) not in shown
        }
        shown |= below.keys()
        level = list(below.values())
        owned += level
    return owned


def descendants(root: KubeObject, objects: Iterable[KubeObject]) -> set[tuple[str, str]]:
    """Kind and name of an object and of all that it owns; outlines of the objects suffice."""
    return {(each.get("kind", ""), each["metadata"]["name"]) for each in (root, *relatives(root, objects))}


def _children(objects: Iterable[KubeObject]) -> dict[str, list[KubeObject]]:
    """Objects by the uid of each of their owners."""
    children: dict[str, list[KubeObject]] = defaultdict(list)
    known = list(objects)
    deployments = {each["metadata"]["name"]: each for each in known if each.get("kind") == "Deployment"}
    for obj in known:
        for owner in obj["metadata"].get("ownerReferences") or ():
            children[_owner(obj, owner, deployments)].append(obj)
    return children


def _owner(obj: KubeObject, owner: KubeObject, deployments: Mapping[str, KubeObject]) -> str:
    """Uid of the parent node. ReplicaSets are not read: their pods are children of the Deployment."""
    if owner.get("kind") == "ReplicaSet":
        template = (obj["metadata"].get("labels") or {}).get("pod-template-hash", "")
        deployment = deployments.get(str(owner.get("name", "")).removesuffix(f"-{template}"))
        if deployment is not None:
            return str(deployment["metadata"].get("uid", ""))
    return str(owner.get("uid", ""))


def _uid(obj: KubeObject) -> str:
    return str(obj["metadata"].get("uid", ""))


def _node(
    obj: KubeObject,
    children: Mapping[str, list[KubeObject]],
    depth: int,
    shown: set[str],
    healths: Mapping[str, dict[str, Any]],
) -> dict[str, Any]:
    metadata = obj["metadata"]
    below = {_uid(each): each for each in children.get(_uid(obj), ()) if _uid(each) not in shown} if depth else {}
    # In place: `shown |= below.keys()` would copy it for each node, so owners would not know what others show.
    shown.update(below)
    listed = sorted(below.values(), key=lambda each: (each.get("kind", ""), each["metadata"]["name"]))
    return {
        "apiVersion": obj.get("apiVersion", ""),
        "kind": obj.get("kind", ""),
        "name": metadata.get("name", ""),
        "uid": _uid(obj),
        **healths[_uid(obj)],
        "children": [_node(each, children, depth - 1, shown, healths) for each in listed],
    }


def health(obj: KubeObject) -> dict[str, Any]:
    """Whether an object is healthy, and if not, a short reason."""
    status = obj.get("status") or {}
    if obj.get("kind") == "Pod":
        row = pod_row(obj)
        state = {"ready": row["ready"], "state": row["phase"], "message": row["message"]}
        return {
            **state,
            **({"node": row["node"]} if row["node"] else {}),
            **({"gpus": row["gpus"]} if row["gpus"] else {}),
        }
    conditions = status.get("conditions") or []
    for kind in ("Ready", "Available", "Succeeded", "Synced", "EndpointsReady"):
        if (condition := find(conditions, kind)) is not None:
            return {
                "ready": condition.get("status") == "True",
                "state": str(status.get("state") or status.get("phase") or condition.get("reason") or ""),
                "message": str(condition.get("message") or ""),
            }
    return {"ready": None, "state": str(status.get("state") or status.get("phase") or ""), "message": ""}


def pod_row(pod: KubeObject) -> dict[str, Any]:
    """A pod as a row: its node, its state, and the reason."""
    spec, status, metadata = pod.get("spec") or {}, pod.get("status") or {}, pod["metadata"]
    ready = find(status.get("conditions") or [], "Ready")
    containers = status.get("containerStatuses") or []
    waiting = [
        (each.get("name", ""), detail)
        for each in container_statuses(pod)
        for detail in [(each.get("state") or {}).get("waiting") or (each.get("state") or {}).get("terminated")]
        if detail and detail.get("reason") not in (None, "Completed", "PodInitializing")
    ]
    message = "; ".join(f"{name}: {detail['reason']} {detail.get('message', '')}".strip() for name, detail in waiting)
    if not message and not spec.get("nodeName"):
        message = str((find(status.get("conditions") or [], "PodScheduled") or {}).get("message") or "")
    return {
        "name": metadata["name"],
        "component": str((metadata.get("labels") or {}).get(labels.COMPONENT) or ""),
        "phase": "Terminating" if metadata.get("deletionTimestamp") else str(status.get("phase") or "Pending"),
        "ready": ready is not None and ready.get("status") == "True",
        "node": str(spec.get("nodeName") or ""),
        "ip": str(status.get("podIP") or ""),
        "gpus": sum(gpus.count(each) for each in spec.get("containers") or ()),
        "restarts": sum(int(each.get("restartCount") or 0) for each in containers),
        "containers": [each.get("name", "") for each in spec.get("containers") or ()],
        "created": str(metadata.get("creationTimestamp") or ""),
        "message": message[:1000],
    }


def gpus_in_use(pod: KubeObject) -> int:
    """GPUs that a pod occupies on its node; 0 if the pod has ended or has no node yet."""
    spec = pod.get("spec") or {}
    if not spec.get("nodeName") or has_ended(pod):
        return 0
    return sum(gpus.count(each) for each in spec.get("containers") or ())
