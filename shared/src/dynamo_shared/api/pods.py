"""What is read from any pod: whether it still runs, or will. Pure."""

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject

_ENDED = ("Succeeded", "Failed")


def has_ended(pod: KubeObject) -> bool:
    """Whether all containers of a pod have ended, and are not started again."""
    return (pod.get("status") or {}).get("phase") in _ENDED


def is_there(pod: KubeObject) -> bool:
    """Whether a pod counts as a replica: it has not ended, and its deletion was not requested."""
    return not objects.is_deleting(pod) and not has_ended(pod)
