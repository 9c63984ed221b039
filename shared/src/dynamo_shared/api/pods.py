"""What is read from any pod: whether it still runs, or will, and for how long once it is ended. Pure."""

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels

#: Seconds that a pod has to finish its requests, unless its template says otherwise.
GRACE_PERIOD = 60
#: The same of an endpoint picker: a gateway may hold a stream open as long as this.
GRACE_PERIOD_OF_PICKER = 130
#: How many of them the runtime's workers use, unless this variable says otherwise; then they abort what is left.
DRAIN_VARIABLE, DRAIN_SECONDS = "DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS", 5

_ENDED = ("Succeeded", "Failed")


def has_ended(pod: KubeObject) -> bool:
    """Whether all containers of a pod have ended, and are not started again."""
    return (pod.get("status") or {}).get("phase") in _ENDED


def is_there(pod: KubeObject) -> bool:
    """Whether a pod counts as a replica: it has not ended, and its deletion was not requested."""
    return not objects.is_deleting(pod) and not has_ended(pod)


def container_statuses(pod: KubeObject) -> tuple[KubeObject, ...]:
    """What a pod's status says of its containers, init containers first: sidecars are some of these."""
    status = pod.get("status") or {}
    return *(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())


def unschedulable(pod: KubeObject) -> KubeObject | None:
    """The condition of a pod that no node has room for; None where it has a node, or may get one."""
    scheduled = objects.condition(pod, "PodScheduled") or {}
    return scheduled if (scheduled.get("status"), scheduled.get("reason")) == ("False", "Unschedulable") else None


def registers(pod: KubeObject) -> bool:
    """Whether a pod is one that serves and has to register in Kubernetes, as what it is called.

    Of an engine on several nodes the leader does. Engines of one pod, none of which is `main`, register each for itself.
    """
    pod_labels = objects.labels(pod)
    if pod_labels.get(labels.DISCOVERY_ENABLED) != "true" or pod_labels.get(labels.ROLE) == "worker":
        return False
    containers = (pod.get("spec") or {}).get("containers") or ()
    return any(each.get("name") == objects.MAIN for each in containers) and objects.is_true(pod, "Ready")
