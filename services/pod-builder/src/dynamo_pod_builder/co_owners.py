"""The Service of a model: all components, and graphs on Grove, that have workers of the model own it together. Pure.

Kubernetes deletes an object with its last owner. So the Service exists as long as any owner does, and clients keep
finding the workers when the owner that created it is deleted, for example after a rolling update.
"""

from collections.abc import Sequence

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, SERVICES

from dynamo_pod_builder.render.names import MODEL_SERVICE

_OWNER_KINDS = frozenset({DYNAMO_COMPONENT_DEPLOYMENTS.kind, DYNAMO_GRAPH_DEPLOYMENTS.kind})


def is_co_owned(obj: KubeObject) -> bool:
    """Whether an object may have several owners: the Service of a model.

    Its selector has only the model's hash, or its name has the hash: another client may have changed the selector.
    """
    if obj.get("kind") != SERVICES.kind:
        return False
    selector = obj.get("spec", {}).get("selector") or {}
    digest = objects.labels(obj).get(labels.BASE_MODEL_HASH)
    return bool(selector.keys() == {labels.BASE_MODEL_HASH}) or objects.name(obj) == f"{MODEL_SERVICE}{digest}"


def owners_of(obj: KubeObject) -> Sequence[KubeObject]:
    """References to the owners that desire an object: its controller, or all owners of a co-owned object."""
    if is_co_owned(obj):
        return [each for each in references(obj) if each["kind"] in _OWNER_KINDS]
    controller = objects.controller_of(obj)
    return () if controller is None else (controller,)


def references(obj: KubeObject) -> list[KubeObject]:
    """All owner references of an object."""
    return obj["metadata"].get("ownerReferences") or []


def owns(owner: KubeObject, obj: KubeObject) -> bool:
    """Whether `owner` desires `obj`; by uid, because names are reused."""
    return any(each["uid"] == objects.uid(owner) for each in owners_of(obj))


def added(owner: KubeObject, obj: KubeObject) -> list[KubeObject]:
    """The owner references of a co-owned object with a further one, `owner`. An object has at most one controller."""
    return [*references(obj), {name: owner[name] for name in ("apiVersion", "kind", "name", "uid")}]


def others(owner: KubeObject, obj: KubeObject) -> list[KubeObject]:
    """The owner references of a co-owned object without those of `owner`; [] if only `owner` desires the object."""
    uid = objects.uid(owner)
    if all(each["uid"] == uid for each in owners_of(obj)):
        return []
    return [each for each in references(obj) if each["uid"] != uid]


def patch_of(obj: KubeObject, owners: list[KubeObject]) -> KubeObject:
    """The patch that gives this version of an object these owners."""
    return {"metadata": {"resourceVersion": obj["metadata"]["resourceVersion"], "ownerReferences": owners}}
