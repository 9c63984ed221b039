"""The definition of LeaderWorkerSet for tests, where its controller and its webhook do not run."""

from dynamo_shared.api.resources import CUSTOM_RESOURCE_DEFINITIONS

ANYTHING = {"x-kubernetes-preserve-unknown-fields": True}
POLICY = {
    "type": "object",
    "properties": {"subdomainPolicy": {"type": "string"}},
    "default": {"subdomainPolicy": "Shared"},
}
#: As the webhook of LeaderWorkerSet fills it in.
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
# The API group is protected: its definition must name the approval.
DEFINITION["metadata"]["annotations"]["api-approved.kubernetes.io"] = "unapproved, for a test"
