"""Kubernetes objects as they come from the API server: decoded JSON, and what is read from any of them.

Use it as a module, `objects.labels(pod)`: the registries of label and annotation names have the same short names. Pure.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

#: One Kubernetes object, or a part of one, as decoded JSON.
KubeObject: TypeAlias = dict[str, Any]
#: Name of the container that runs a component, in its pods and in their templates.
MAIN = "main"
#: Init container that runs the Dynamo runtime next to an engine that has none, as from Dynamo 1.6 on. It does not end.
RUNTIME = "runtime"


def name(obj: KubeObject) -> str:
    """Name of a stored object."""
    return str(obj["metadata"]["name"])


def namespace(obj: KubeObject) -> str:
    """Namespace of an object; "" where it has none."""
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
    """How often the spec of a stored object was written; 1 where the API server does not count."""
    return int(obj["metadata"].get("generation", 1))


def replicas(obj: KubeObject) -> int:
    """How many pods, or groups of them, a workload or a component desires: one where it says nothing."""
    return int((obj.get("spec") or {}).get("replicas", 1))


def created_at(obj: KubeObject) -> str:
    """Creation time of an object, RFC 3339; "" where it is not stored yet."""
    return str(obj["metadata"].get("creationTimestamp", ""))


def is_deleting(obj: KubeObject) -> bool:
    """Whether an object's deletion was requested, and only finalizers keep it."""
    return "deletionTimestamp" in obj["metadata"]


def controller_of(obj: KubeObject) -> KubeObject | None:
    """Owner reference of an object's controller; None where nothing controls it."""
    # A loop: this is asked of every object many times, and a generator takes twice as long.
    references: list[KubeObject] = obj["metadata"].get("ownerReferences") or []
    for reference in references:
        if reference.get("controller"):
            return reference
    return None


def controls(owner: KubeObject, obj: KubeObject) -> bool:
    """Whether `owner` is the controller of `obj`: by uid, since names are used again."""
    controller = controller_of(obj)
    return controller is not None and bool(controller["uid"] == uid(owner))


def without_finalizer(obj: KubeObject, finalizer: str) -> list[str] | None:
    """The finalizers of an object but for this one; None where it does not have it."""
    finalizers = obj["metadata"].get("finalizers") or ()
    return [each for each in finalizers if each != finalizer] if finalizer in finalizers else None


def without_managed_fields(obj: KubeObject) -> KubeObject:
    """The object without `metadata.managedFields`, which is up to half of it and read where fields are claimed alone."""
    metadata = obj["metadata"]
    if "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def without_status(obj: KubeObject) -> KubeObject:
    """The object as far as it says what is desired: without its status, and the version that changes with that."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": metadata}


def condition(obj: KubeObject | None, type_: str) -> KubeObject | None:
    """The condition of a type in an object's status; None where it is missing, or there is no object."""
    entries = ((obj or {}).get("status") or {}).get("conditions") or ()
    return next((entry for entry in entries if entry["type"] == type_), None)


def is_true(obj: KubeObject | None, type_: str) -> bool:
    """Whether an object's status has a condition of this type that is `True`."""
    entry = condition(obj, type_)
    return entry is not None and entry["status"] == "True"


def of_uid(desired: KubeObject, uid: str) -> KubeObject:
    """`desired` for exactly one stored object: an apply to another one of its name, or to none, is a Conflict."""
    return {**desired, "metadata": {**desired["metadata"], "uid": uid}}


def size_of(obj: KubeObject) -> int:
    """Bytes of an object as JSON: two milliseconds for the largest that the API server stores."""
    return len(msgspec.json.encode(obj))
