"""The rights of the profiling Job: its own ServiceAccount in the request's namespace. Pure."""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import OPERATOR, labels
from dynamo_shared.api.resources import GROUP, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS

from dynamo_profiler.requests.thorough import names

#: The Job creates candidates as graphs and reads the status of their pods; the relay writes one ConfigMap.
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
    """ServiceAccount, Role and RoleBinding. With `cluster_role`, the binding refers to this ClusterRole, without a
    Role.
    """
    metadata = {"name": names.SERVICE_ACCOUNT, "namespace": namespace, "labels": {labels.MANAGED_BY: OPERATOR}}
    made: list[KubeObject] = [{**SERVICE_ACCOUNTS.type_meta, "metadata": metadata}]
    if not cluster_role:
        made.append({**ROLES.type_meta, "metadata": metadata, "rules": list(RULES)})
    kind, name = ("ClusterRole", cluster_role) if cluster_role else ("Role", names.SERVICE_ACCOUNT)
    made.append(
        {
            **ROLE_BINDINGS.type_meta,
            # The role of a binding cannot be changed: each binding has a separate name.
            "metadata": {**metadata, "name": f"{names.SERVICE_ACCOUNT}-{name}" if cluster_role else name},
            "roleRef": {"apiGroup": ROLES.group, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": names.SERVICE_ACCOUNT, "namespace": namespace}],
        }
    )
    return made
