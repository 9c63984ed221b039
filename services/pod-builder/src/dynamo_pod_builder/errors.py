"""Errors that reconcilers handle, in addition to those of rendering and of the API server."""

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import Resource


class NameTaken(Exception):
    """An object of the desired name has another owner; `holder_kind` and `holder_uid` are its controller's, or ""."""

    def __init__(self, resource: Resource, observed: KubeObject) -> None:
        owner = objects.controller_of(observed)
        self.holder_kind = owner["kind"] if owner else ""
        self.holder_uid = owner["uid"] if owner else ""
        whose = f"belongs to {owner['kind']} {owner['name']}" if owner else "has no known owner"
        super().__init__(
            f"a {resource.kind} named {observed['metadata']['name']!r} exists already and {whose}; "
            "the platform does not change it: delete or rename it, or rename this deployment"
        )


class PredecessorRemains(NameTaken):
    """An object of the desired name belongs to a deleted owner with the present owner's name: it is deleted soon."""

    def __init__(self, resource: Resource, observed: KubeObject) -> None:
        super().__init__(resource, observed)
        self.args = (
            f"waiting until Kubernetes has deleted {resource.kind} {observed['metadata']['name']}, "
            f"which belongs to the {self.holder_kind} that had this name before",
        )
