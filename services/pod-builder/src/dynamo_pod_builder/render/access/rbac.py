"""Service accounts of pods and their rights."""

from collections.abc import Iterable, Sequence

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    CLUSTER_ROLES,
    GROUP,
    INFERENCE_POOLS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Resource,
)

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.metadata import MANAGED_BY, object_metadata

_READ = ["get", "list", "watch"]
_REGISTER = ["create", "get", "list", "watch", "update", "patch", "delete"]
#: Pods register themselves as DynamoWorkerMetadata, and discover others through EndpointSlices.
_DISCOVERY_RULES: list[KubeObject] = [
    {"apiGroups": [""], "resources": ["endpoints", "pods"], "verbs": _READ},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": _READ},
    {
        "apiGroups": [GROUP],
        "resources": ["dynamoworkermetadatas"],
        "verbs": _REGISTER,
    },
]


def discovery_access(
    graph: str, namespace: str, owner: KubeObject, templates: Iterable[KubeObject] = ()
) -> list[KubeObject]:
    """ServiceAccount, Role and RoleBinding of pods that find each other through Kubernetes; deleted with their owner.

    Accounts that pod templates name, such as those of a cloud's workload identity, also get the Role: a user who may
    name an account there may run any pod with it.
    """
    account = names.discovery_account(graph)
    role = f"{account}-role"
    named = {str((each.get("spec") or {}).get("serviceAccountName") or account) for each in templates}
    others = sorted(named - {account, names.PLANNER_ACCOUNT, names.EPP_ACCOUNT})
    return [
        _service_account(account, namespace, owner),
        _role(account, namespace, role, _DISCOVERY_RULES, owner),
        _binding([account, *others], namespace, ROLES, role, owner),
    ]


#: Rights of a planner in its graph's namespace: it scales, and discovers workers (reference behaviour, section 10).
PLANNER_RULES: list[KubeObject] = [
    {
        "apiGroups": [GROUP],
        "resources": ["dynamographdeployments", "dynamocomponentdeployments"],
        "verbs": ["get", "list", "create", "update", "patch"],
    },
    {"apiGroups": [GROUP], "resources": ["dynamographdeploymentscalingadapters/scale"], "verbs": ["patch"]},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": _READ},
    {"apiGroups": [GROUP], "resources": ["dynamoworkermetadatas"], "verbs": _REGISTER},
]
#: What an endpoint picker does: it reads its pool and the pool's pods. Token reviews are cluster-wide, and need a
#: ClusterRole that the configuration names.
PICKER_RULES: list[KubeObject] = [
    {"apiGroups": [INFERENCE_POOLS.group], "resources": [INFERENCE_POOLS.plural], "verbs": _READ},
    {
        "apiGroups": ["inference.networking.x-k8s.io"],
        "resources": ["inferencemodels", "inferenceobjectives", "inferencepools"],
        "verbs": _READ,
    },
    {"apiGroups": [""], "resources": ["pods"], "verbs": _READ},
    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": _READ},
    {"apiGroups": [GROUP], "resources": ["dynamoworkermetadatas"], "verbs": _REGISTER},
]


def shared_access(account: str, namespace: str, rules: list[KubeObject], cluster_role: str) -> list[KubeObject]:
    """A ServiceAccount without an owner, because all graphs of the namespace share it, with a Role of these rules.

    With a `cluster_role`, the account is bound to that instead.
    """
    shared = _service_account(account, namespace, None)
    if cluster_role:
        return [shared, _binding([account], namespace, CLUSTER_ROLES, cluster_role, None)]
    role = f"{account}-role"
    return [
        shared,
        _role(account, namespace, role, rules, None),
        _binding([account], namespace, ROLES, role, None),
    ]


def _service_account(name: str, namespace: str, owner: KubeObject | None) -> KubeObject:
    return {
        **SERVICE_ACCOUNTS.type_meta,
        "metadata": object_metadata(name, namespace, _labels(name), {}, owner),
    }


def _role(account: str, namespace: str, name: str, rules: list[KubeObject], owner: KubeObject | None) -> KubeObject:
    return {
        **ROLES.type_meta,
        "metadata": object_metadata(name, namespace, _labels(account), {}, owner),
        "rules": rules,
    }


def _binding(
    accounts: Sequence[str], namespace: str, role_kind: Resource, role: str, owner: KubeObject | None
) -> KubeObject:
    """A binding of the role to these accounts; the first account gives it its name."""
    account = accounts[0]
    return {
        **ROLE_BINDINGS.type_meta,
        "metadata": object_metadata(f"{account}-binding", namespace, _labels(account), {}, owner),
        "roleRef": {"apiGroup": ROLE_BINDINGS.group, "kind": role_kind.kind, "name": role},
        "subjects": [{"kind": SERVICE_ACCOUNTS.kind, "name": each, "namespace": namespace} for each in accounts],
    }


def _labels(account: str) -> dict[str, str]:
    return {
        labels.APP_MANAGED_BY: MANAGED_BY,
        labels.APP_COMPONENT: "rbac",
        labels.APP_NAME: names.shortened_label(account),
    }
