"""The kinds and versions for which the API server calls the webhooks."""

from dynamo_shared.api import resources
from dynamo_shared.api.crds.kinds import DEFINITIONS, SERVED
from dynamo_shared.api.resources import Resource

#: Worker pods write DynamoWorkerMetadata themselves: discovery of workers must not depend on this service. Its schema
#: checks it.
UNREVIEWED = frozenset({resources.DYNAMO_WORKER_METADATAS.kind})

REVIEWED: tuple[Resource, ...] = tuple(resource for resource in SERVED if resource.kind not in UNREVIEWED)
CONVERTED: tuple[Resource, ...] = tuple(
    definition.versions[0].resource for definition in DEFINITIONS if definition.is_converted
)
"""Kinds of two versions that differ."""
_BY_KIND = {(resource.group, resource.version, resource.kind): resource for resource in SERVED}


def resource_of(group: str, version: str, kind: str) -> Resource | None:
    """The resource of a kind; None if this platform does not define it."""
    return _BY_KIND.get((group, version, kind))
