"""The page's user on a local cluster: a service account with the rights of an engineer, and its token in a file."""

from pathlib import Path
from typing import Any

from dynamo_shared.api.resources import CLUSTER_ROLES, GROUP, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, Resource
from dynamo_shared.kube import KubeClient

from dynamo_ctl import credentials

NAME = "engineer"
TOKEN = "page-token"  # noqa: S105 - the name of a file
_RBAC = "rbac.authorization.k8s.io"
_CLUSTER_ROLE_BINDINGS = Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
_READ = ["get", "list", "watch"]
_IN_THE_NAMESPACE = (
    {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]},
    {
        "apiGroups": [""],
        "resources": ["pods", "pods/log", "services", "configmaps", "persistentvolumeclaims"],
        "verbs": _READ,
    },
    {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims", "resourceclaimtemplates"], "verbs": _READ},
    # A chat calls the frontend's Service.
    {"apiGroups": [""], "resources": ["services/proxy"], "verbs": ["get", "create"]},
    {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": _READ},
    {
        "apiGroups": ["apps", "batch", "autoscaling", "networking.k8s.io"],
        "resources": ["deployments", "jobs", "horizontalpodautoscalers", "ingresses"],
        "verbs": _READ,
    },
)
#: To count free GPUs, the page reads nodes, and pods of all namespaces.
_IN_THE_CLUSTER = ({"apiGroups": [""], "resources": ["nodes", "pods", "namespaces"], "verbs": _READ},)
#: Lifetime of the token: longer than a demo, or a day of work. Seconds.
_TOKEN_LIFETIME = 24 * 3600


async def page_token(client: KubeClient, namespace: str, folder: Path) -> Path:
    """Create a token of the account in a file that only this user may read. Replaces the rights of an earlier start."""
    cluster_wide = f"{namespace}-{NAME}"
    for resource, obj in (
        (SERVICE_ACCOUNTS, _head(SERVICE_ACCOUNTS, NAME, namespace)),
        (ROLES, {**_head(ROLES, NAME, namespace), "rules": list(_IN_THE_NAMESPACE)}),
        (ROLE_BINDINGS, _binding(ROLE_BINDINGS, "Role", NAME, namespace, namespace)),
        (CLUSTER_ROLES, {**_head(CLUSTER_ROLES, cluster_wide), "rules": list(_IN_THE_CLUSTER)}),
        (_CLUSTER_ROLE_BINDINGS, _binding(_CLUSTER_ROLE_BINDINGS, "ClusterRole", cluster_wide, "", namespace)),
    ):
        await client.apply(resource, obj)
    file = folder / TOKEN
    credentials.write(file, await _token(client, namespace) + "\n")
    return file


async def _token(client: KubeClient, namespace: str) -> str:
    # A token is a subresource of its account.
    tokens = Resource("", "v1", f"serviceaccounts/{NAME}/token", "TokenRequest")
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"namespace": namespace},
        "spec": {"expirationSeconds": _TOKEN_LIFETIME},
    }
    return str((await client.create(tokens, request))["status"]["token"])


def _head(resource: Resource, name: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {**resource.type_meta, "metadata": metadata}


def _binding(resource: Resource, kind: str, role: str, namespace: str, home: str) -> dict[str, Any]:
    return {
        **_head(resource, role, namespace),
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": home}],
    }
