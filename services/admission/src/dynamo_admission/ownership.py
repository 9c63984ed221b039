"""The owner of the webhook configurations: the garbage collector deletes them with it, so an uninstallation never
leaves them.
"""

import structlog
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import CLUSTER_ROLES, ObjectKey, owner_reference
from dynamo_shared.kube import KubeClient, get_if_present

log = structlog.get_logger("dynamo.admission")


async def owner_of(kube: KubeClient, cluster_role: str) -> KubeObject | None:
    """An owner reference to a ClusterRole; None without a name, or if it does not exist. Raises KubeError.

    The ClusterRole is read each time: a recreated ClusterRole has another uid, and Kubernetes deletes objects whose
    owner does not exist.
    """
    if not cluster_role:
        return None
    role = await get_if_present(kube, CLUSTER_ROLES, ObjectKey("", cluster_role))
    if role is None:
        log.warning("the owner of the webhook configurations does not exist", cluster_role=cluster_role)
        return None
    # The deletion of the owner does not wait for this object: `blockOwnerDeletion` would require a right on the owner's
    # finalizers.
    return owner_reference(CLUSTER_ROLES, cluster_role, role["metadata"]["uid"])
