"""What owns the webhook configurations: the garbage collector deletes them with it, and no uninstallation forgets them."""

import structlog
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import CLUSTER_ROLES, ObjectKey, owner_reference
from dynamo_shared.kube import KubeClient, get_if_present

log = structlog.get_logger("dynamo.admission")


async def owner_of(kube: KubeClient, cluster_role: str) -> KubeObject | None:
    """An owner reference to a ClusterRole, as it is now; None where none is named or it does not exist. Raises KubeError.

    It is asked for each time: one that was deleted and created again has another uid, and an owner that does not exist
    has its objects deleted.
    """
    if not cluster_role:
        return None
    role = await get_if_present(kube, CLUSTER_ROLES, ObjectKey("", cluster_role))
    if role is None:
        log.warning("the owner of the webhook configurations does not exist", cluster_role=cluster_role)
        return None
    # Deleting the owner does not wait for this object: `blockOwnerDeletion` would require a right on the owner's finalizers.
    return owner_reference(CLUSTER_ROLES, cluster_role, role["metadata"]["uid"])
