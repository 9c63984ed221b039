"""Kubernetes objects as decoded JSON, and the fields that all kinds have. Pure.

Import the module (`objects.labels(pod)`), because the registries of label and annotation names have the same names.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

#: One Kubernetes object, or a part of one, as decoded JSON.
KubeObject: TypeAlias = dict[str, Any]
#: Name of the container that runs a component.
MAIN = "main"
#: Name of the sidecar that runs the Dynamo runtime for an engine without it (Dynamo 1.6 and later).
RUNTIME = "runtime"


def name(obj: KubeObject) -> str:
    """Name of an object."""
    return str(obj["metadata"]["name"])


def namespace(obj: KubeObject) -> str:
    """Namespace of an object; "" without one."""
    return str(obj["metadata"].get("namespace", ""))


def uid(obj: KubeObject) -> str:
    """Uid of a stored object."""
    return str(obj["metadata"]["uid"])


def labels(obj: KubeObject) -> Mapping[str, str]:
    """Labels of an object, or of a pod template."""
    own_labels: Mapping[str, str] = (obj.get("metadata") or {}).get("labels") or {}
    return own_labels


def annotations(obj: KubeObject) -> Mapping[str, str]:
    """Annotations of an object, or of a pod template."""
    own_annotations: Mapping[str, str] = (obj.get("metadata") or {}).get("annotations") or {}
    return own_annotations


def generation(obj: KubeObject) -> int:
    """Generation of an object; 1 for kinds without one."""
    return int(obj["metadata"].get("generation", 1))


def replicas(obj: KubeObject) -> int:
    """Desired replicas of a workload or a component; 1 without a number."""
    return int((obj.get("spec") or {}).get("replicas", 1))


def created_at(obj: KubeObject) -> str:
    """Creation time of an object, RFC 3339; "" if it is not stored yet."""
    return str(obj["metadata"].get("creationTimestamp", ""))


def is_deleting(obj: KubeObject) -> bool:
    """Whether the deletion of an object was requested."""
    return "deletionTimestamp" in obj["metadata"]


def controller_of(obj: KubeObject) -> KubeObject | None:
    """Owner reference of an object's controller; None without one."""
    # A loop, because a generator takes twice as long, and this is called very often.
    references: list[KubeObject] = obj["metadata"].get("ownerReferences") or []
    for reference in references:
        if reference.get("controller"):
            return reference
    return None


def controls(owner: KubeObject, obj: KubeObject) -> bool:
    """Whether `owner` is the controller of `obj`, by uid, because names are reused."""
    controller = controller_of(obj)
    return controller is not None and bool(controller["uid"] == uid(owner))


def without_finalizer(obj: KubeObject, finalizer: str) -> list[str] | None:
    """The other finalizers of an object; None if it does not have this one."""
    finalizers = obj["metadata"].get("finalizers") or ()
    return [each for each in finalizers if each != finalizer] if finalizer in finalizers else None


def without_managed_fields(obj: KubeObject) -> KubeObject:
    """The object without `metadata.managedFields`, which are up to half of its size."""
    metadata = obj["metadata"]
    if "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


_ESSENTIAL = frozenset(
    {"name", "namespace", "uid", "resourceVersion", "generation"}
    | {"creationTimestamp", "deletionTimestamp", "finalizers"}
)


def with_essential_metadata(obj: KubeObject, *kept: str) -> KubeObject:
    """The object without the labels, owners and annotations that a service does not read: a tenant may write a megabyte
    of them. `kept`: the annotations that it reads.
    """
    metadata = obj["metadata"]
    essential = {name: value for name, value in metadata.items() if name in _ESSENTIAL}
    known = metadata.get("annotations") or {}
    if read := {name: known[name] for name in kept if name in known}:
        essential["annotations"] = read
    return {**obj, "metadata": essential}


def without_status(obj: KubeObject) -> KubeObject:
    """The object without its status, and without the resourceVersion, which changes with the status."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": metadata}


def condition(obj: KubeObject | None, type_: str) -> KubeObject | None:
    """The condition of a type in an object's status; None if it is missing, or without an object."""
    entries = ((obj or {}).get("status") or {}).get("conditions") or ()
    return next((entry for entry in entries if entry["type"] == type_), None)


def is_true(obj: KubeObject | None, type_: str) -> bool:
    """Whether the condition of a type in an object's status is `True`."""
    entry = condition(obj, type_)
    return entry is not None and entry["status"] == "True"


def of_uid(desired: KubeObject, uid: str) -> KubeObject:
    """`desired` with the uid of a stored object: the API server answers Conflict if the stored object has another uid."""
    return {**desired, "metadata": {**desired["metadata"], "uid": uid}}


def size_of(obj: KubeObject) -> int:
    """Size of an object as JSON, in bytes. Takes 2 ms for the largest object that the API server stores."""
    return len(msgspec.json.encode(obj))
