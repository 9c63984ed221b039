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
)

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.metadata import MANAGED_BY, new_object

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
    named = {str((each.get("spec") or {}).get("serviceAccountName") or account) for each in templates}
    others = sorted(named - {account, names.PLANNER_ACCOUNT, names.EPP_ACCOUNT})
    return [
        _service_account(account, namespace, owner),
        _role(account, namespace, _DISCOVERY_RULES, owner),
        _binding([account, *others], namespace, owner),
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
        return [shared, _binding([account], namespace, None, cluster_role)]
    return [shared, _role(account, namespace, rules, None), _binding([account], namespace, None)]


def _service_account(name: str, namespace: str, owner: KubeObject | None) -> KubeObject:
    return new_object(SERVICE_ACCOUNTS, name, namespace, _labels(name), owner=owner)


def _role(account: str, namespace: str, rules: list[KubeObject], owner: KubeObject | None) -> KubeObject:
    return new_object(ROLES, _role_of(account), namespace, _labels(account), owner=owner, rules=rules)


def _role_of(account: str) -> str:
    return f"{account}-role"


def _binding(accounts: Sequence[str], namespace: str, owner: KubeObject | None, cluster_role: str = "") -> KubeObject:
    """A binding of the first account's Role, or of a ClusterRole, to these accounts."""
    account = accounts[0]
    kind, name = (CLUSTER_ROLES, cluster_role) if cluster_role else (ROLES, _role_of(account))
    return new_object(
        ROLE_BINDINGS,
        f"{account}-binding",
        namespace,
        _labels(account),
        owner=owner,
        roleRef={"apiGroup": ROLE_BINDINGS.group, "kind": kind.kind, "name": name},
        subjects=[{"kind": SERVICE_ACCOUNTS.kind, "name": each, "namespace": namespace} for each in accounts],
    )


def _labels(account: str) -> dict[str, str]:
    return {
        labels.APP_MANAGED_BY: MANAGED_BY,
        labels.APP_COMPONENT: "rbac",
        labels.APP_NAME: names.shortened_label(account),
    }
