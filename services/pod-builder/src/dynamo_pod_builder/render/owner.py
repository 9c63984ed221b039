"""Owner references: whose child an object is, so that Kubernetes deletes it along with its owner."""

from __future__ import annotations

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import Resource
from dynamo_shared.api.v1beta1 import ObjectMeta


def controller_reference(resource: Resource, owner: ObjectMeta) -> KubeObject:
    """Reference that makes `owner` the controller. Without the uid where the owner is not stored yet."""
    reference: KubeObject = {
        **resource.type_meta,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    if not owner.uid:
        del reference["uid"]
    return reference
