"""The definition of LeaderWorkerSet for tests, without its controller and webhook."""

from dynamo_shared.api.resources import CUSTOM_RESOURCE_DEFINITIONS

ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}
POLICY = {
    "type": "object",
    "properties": {"subdomainPolicy": {"type": "string"}},
    "default": {"subdomainPolicy": "Shared"},
}
#: Defaults that LeaderWorkerSet's webhook would set.
SPEC = {"type": "object", "properties": {"networkConfig": POLICY}, **ANYTHING}
DEFINITION = {
    **CUSTOM_RESOURCE_DEFINITIONS.type_meta,
    "metadata": {"name": "leaderworkersets.leaderworkerset.x-k8s.io", "annotations": {}},
    "spec": {
        "group": "leaderworkerset.x-k8s.io",
        "names": {
            "kind": "LeaderWorkerSet",
            "listKind": "LeaderWorkerSetList",
            "plural": "leaderworkersets",
            "singular": "leaderworkerset",
        },
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}, **ANYTHING}},
            }
        ],
    },
}
# The API group is protected: its definition must have this annotation.
DEFINITION["metadata"]["annotations"]["api-approved.kubernetes.io"] = "unapproved, for a test"
