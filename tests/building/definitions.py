"""Definitions of kinds of other projects, whose controllers do not run in tests."""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource

from tests.building.objects import object_of

#: The schema of an object with any content.
ANYTHING: KubeObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition_of(resource: Resource, **properties: KubeObject) -> KubeObject:
    """The definition of a kind whose objects may have any content; `properties` are schemas of single fields."""
    kind = resource.kind
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {**ANYTHING, "properties": properties}},
    }
    return object_of(
        CUSTOM_RESOURCE_DEFINITIONS,
        resource.id,
        "",
        # The API server demands an approval for a group in Kubernetes' own domain.
        annotations={"api-approved.kubernetes.io": "unapproved, for a test"},
        spec={
            "group": resource.group,
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": resource.plural, "singular": kind.lower()},
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [version],
        },
    )
