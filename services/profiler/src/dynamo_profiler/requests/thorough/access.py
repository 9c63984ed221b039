"""What the profiling Job may do: an account of its own in the request's namespace. Pure."""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import OPERATOR, labels
from dynamo_shared.api.resources import GROUP, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS

from dynamo_profiler.requests.thorough import names

#: It makes candidates as graphs, reads how their pods do, and the relay writes one ConfigMap.
RULES: tuple[KubeObject, ...] = (
    {
        "apiGroups": [GROUP],
        "resources": ["dynamographdeployments"],
        "verbs": ["create", "get", "list", "watch", "update", "patch", "delete"],
    },
    {"apiGroups": [""], "resources": ["pods", "pods/log", "services"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get", "list", "update", "patch"]},
)


def objects(namespace: str, cluster_role: str) -> list[KubeObject]:
    """Account, role and binding; bound to a ClusterRole instead of a role of our own where its name is given."""
    metadata = {"name": names.SERVICE_ACCOUNT, "namespace": namespace, "labels": {labels.MANAGED_BY: OPERATOR}}
    made: list[KubeObject] = [{**SERVICE_ACCOUNTS.type_meta, "metadata": metadata}]
    if not cluster_role:
        made.append({**ROLES.type_meta, "metadata": metadata, "rules": list(RULES)})
    kind, name = ("ClusterRole", cluster_role) if cluster_role else ("Role", names.SERVICE_ACCOUNT)
    made.append(
        {
            **ROLE_BINDINGS.type_meta,
            # A binding cannot be changed to another role: each has a name of its own.
            "metadata": {**metadata, "name": f"{names.SERVICE_ACCOUNT}-{name}" if cluster_role else name},
            "roleRef": {"apiGroup": ROLES.group, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": names.SERVICE_ACCOUNT, "namespace": namespace}],
        }
    )
    return made
