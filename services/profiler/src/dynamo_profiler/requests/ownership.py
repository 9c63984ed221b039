"""Writes the objects of requests: creates missing ones, corrects managed ones, and never takes over others."""

from collections.abc import Callable

from dynamo_shared.api.objects import KubeObject, of_uid
from dynamo_shared.api.registry import OPERATOR, labels
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, Resource, controller_reference, key_of, of
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import AlreadyExists, NotFound


class NameInUse(Exception):
    """An object of the desired name exists that this platform does not manage."""

    def __init__(self, resource: Resource, name: str) -> None:
        super().__init__(
            f"a {resource.kind} named {name!r} exists and is not managed by this platform, which leaves the object unchanged: "
            "delete or rename it, and create the request again"
        )


def is_managed(observed: KubeObject, request: str = "") -> bool:
    """Whether this platform created an object; with `request`, whether it did so for the request of that name."""
    own_labels = observed["metadata"].get("labels") or {}
    return own_labels.get(labels.MANAGED_BY) == OPERATOR and request in ("", own_labels.get(labels.REQUEST_NAME))


async def write(kube: KubeClient, desired: KubeObject, is_own: Callable[[KubeObject], bool]) -> KubeObject:
    """Create or correct an object. Raises NameInUse if it exists and `is_own` returns False; KubeError from the API
    server.
    """
    resource, key = of(desired), key_of(desired)
    try:
        observed = await kube.get(resource, key)
    except NotFound:
        try:
            # Unlike apply, create takes nothing over in a race.
            return await kube.create(resource, desired)
        except AlreadyExists:
            observed = await kube.get(resource, key)
    if not is_own(observed):
        raise NameInUse(resource, key.name)
    # The uid is a precondition: another object that got the name meanwhile stays unchanged.
    return await kube.apply(resource, of_uid(desired, observed["metadata"]["uid"]))


def owner_of(obj: KubeObject) -> KubeObject:
    """The owner reference of the request, as the controller of its objects."""
    return controller_reference(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, obj["metadata"]["name"], obj["metadata"]["uid"])
