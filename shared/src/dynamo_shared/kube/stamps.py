"""Decides whether an object must be written again, by a hash of its last desired state in the object. Pure."""

import hashlib

import msgspec

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import LAST_APPLIED_HASH
from dynamo_shared.kube import coverage


def stamped(desired: KubeObject, *, with_owners: bool = True) -> KubeObject:
    """`desired` with an annotation that has its hash, which changes with every desired field.

    The hash excludes the number of replicas, which changes often and is compared separately. If several owners desire
    the same object, it must not depend on the owner that applies it (`with_owners`).
    """
    spec, metadata, hashed = desired.get("spec"), desired["metadata"], desired
    if isinstance(spec, dict) and "replicas" in spec:
        hashed = {**desired, "spec": {**spec, "replicas": None}}
    if not with_owners:
        hashed = {**hashed, "metadata": {**metadata, "ownerReferences": []}}
    digest = hashlib.sha256(msgspec.json.encode(hashed, order="sorted")).hexdigest()[:16]
    annotations = {**metadata.get("annotations", {}), LAST_APPLIED_HASH: digest}
    return {**desired, "metadata": {**metadata, "annotations": annotations}}


def difference(stamped_object: KubeObject, observed: KubeObject) -> str:
    """Why an object must be written: the path that it lacks, or a hash of another desired object; "" if nothing differs."""
    known, asked = (objects.annotations(each).get(LAST_APPLIED_HASH) for each in (observed, stamped_object))
    if known != asked:
        return "the desired object has changed"
    return coverage.missing(stamped_object, observed)
