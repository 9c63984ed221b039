"""Limits of the replicas of a component, and of the nodes of a replica, against mistakes that would flood the cluster."""

from typing import Final

INT32_MAX: Final = 2**31 - 1
"""The schema refuses numbers above this one."""
MAX_REPLICAS: Final = 150_000
"""Pods that Kubernetes supports in a cluster ("Considerations for large clusters")."""
MAX_NODES: Final = 1024
"""Nodes of one replica: an engine gets the addresses of all of them."""
TOO_MANY: Final = (
    f"{{replicas}} replicas are more than the {MAX_REPLICAS} pods that Kubernetes supports in a cluster: write a "
    "smaller number"
)
TOO_FEW: Final = (
    "{replicas} replicas are fewer than the {least} of minAvailable, which Grove keeps together: write 0, or "
    "{least} or more"
)


def too_few(replicas: int, least: int) -> str:
    """Why a number of replicas is below `least` (the minAvailable in Grove); empty if it is not, or is 0."""
    return TOO_FEW.format(replicas=replicas, least=least) if 0 < replicas < least else ""


def too_many(replicas: int) -> str:
    """Why a number of replicas is above the limit; empty if it is not."""
    return TOO_MANY.format(replicas=replicas) if replicas > MAX_REPLICAS else ""
