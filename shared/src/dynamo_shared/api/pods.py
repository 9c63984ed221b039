"""States of pods, and their grace periods. Pure."""

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels

#: Default termination grace period of pods. Seconds.
GRACE_PERIOD = 60
#: Default termination grace period of endpoint pickers, because a gateway may have a stream open for so long. Seconds.
GRACE_PERIOD_OF_PICKER = 130
#: Variable with the time after which terminating workers of the Dynamo runtime abort their requests, and its default. Seconds.
DRAIN_VARIABLE, DRAIN_SECONDS = "DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS", 5

_ENDED = ("Succeeded", "Failed")


def has_ended(pod: KubeObject) -> bool:
    """Whether all containers of a pod have terminated, and do not restart."""
    return (pod.get("status") or {}).get("phase") in _ENDED


def is_active(pod: KubeObject) -> bool:
    """Whether a pod is active, as controllers of Kubernetes define it: it has not ended, and its deletion was not requested."""
    return not objects.is_deleting(pod) and not has_ended(pod)


def container_statuses(pod: KubeObject) -> tuple[KubeObject, ...]:
    """Statuses of a pod's containers, also init containers (first), because these may be sidecars."""
    status = pod.get("status") or {}
    return *(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())


def unschedulable(pod: KubeObject) -> KubeObject | None:
    """The condition PodScheduled of a pod that the scheduler cannot place on a node; None for other pods."""
    scheduled = objects.condition(pod, "PodScheduled") or {}
    return scheduled if (scheduled.get("status"), scheduled.get("reason")) == ("False", "Unschedulable") else None


def registers(pod: KubeObject) -> bool:
    """Whether a pod is ready and must have a DynamoWorkerMetadata with its name.

    Not so for followers of a multi-node engine, and pods without a container `main`, whose containers register separately.
    """
    pod_labels = objects.labels(pod)
    if pod_labels.get(labels.DISCOVERY_ENABLED) != "true" or pod_labels.get(labels.ROLE) == "worker":
        return False
    containers = (pod.get("spec") or {}).get("containers") or ()
    return any(each.get("name") == objects.MAIN for each in containers) and objects.is_true(pod, "Ready")
