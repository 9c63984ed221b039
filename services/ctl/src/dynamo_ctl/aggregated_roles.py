"""Rights of the roles `view`, `edit` and `admin` on the platform's kinds, for a cluster that dynamoctl starts.

The chart installs the same rules (templates/aggregated-roles.yaml).
"""

from collections.abc import Iterator

from dynamo_shared.api import resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import GROUP
from dynamo_shared.kube import KubeClient

_WRITTEN_BY_USERS = (
    resources.DYNAMO_GRAPH_DEPLOYMENTS,
    resources.DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    resources.DYNAMO_MODELS,
    resources.DYNAMO_CHECKPOINTS,
    resources.DYNAMO_DEPLOYMENTS,
    resources.DYNAMO_NIM_DEPLOYMENTS,
    resources.DYNAMO_NIM_REQUESTS,
)
_READ_BY_USERS = (
    *_WRITTEN_BY_USERS,
    resources.DYNAMO_COMPONENT_DEPLOYMENTS,
    resources.DYNAMO_WORKER_METADATAS,
)
_SCALED_BY_USERS = (resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, resources.DYNAMO_COMPONENT_DEPLOYMENTS)


def aggregated_roles() -> Iterator[KubeObject]:
    """ClusterRoles that Kubernetes adds to `view`, `edit` and `admin`."""
    scales = [f"{each.plural}/scale" for each in _SCALED_BY_USERS]
    read, written = ([each.plural for each in kinds] for kinds in (_READ_BY_USERS, _WRITTEN_BY_USERS))
    yield _role("view", ("view", "edit", "admin"), (read, ["get", "list", "watch"]), (scales, ["get"]))
    yield _role(
        "edit",
        ("edit", "admin"),
        (written, ["create", "delete", "deletecollection", "patch", "update"]),
        (scales, ["patch", "update"]),
    )


async def give_roles(client: KubeClient) -> None:
    """Create the roles, or update the roles of an earlier start. Raises KubeError."""
    for role in aggregated_roles():
        await client.apply(resources.CLUSTER_ROLES, role)


def _role(name: str, to: tuple[str, ...], *rules: tuple[list[str], list[str]]) -> KubeObject:
    return {
        **resources.CLUSTER_ROLES.type_meta,
        "metadata": {
            "name": f"dynamo-platform-{name}",
            "labels": {f"rbac.authorization.k8s.io/aggregate-to-{each}": "true" for each in to},
        },
        "rules": [{"apiGroups": [GROUP], "resources": kinds, "verbs": verbs} for kinds, verbs in rules],
    }
