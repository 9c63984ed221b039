"""The start-up time of workers, measured from past starts. Pure.

Measured from the assignment of a node until the pod is ready: waiting for a node is counted separately
(`PoolCounts.pending`), and does not predict the next start if there is room.
"""

from collections import deque
from collections.abc import Iterable
from statistics import median

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import container_statuses
from dynamo_shared.api.untrusted import times

REMEMBERED = 32
"""Starts that are kept; older ones may have had other images and models."""
LONGEST = 7200.0
"""Seconds. If a pod's node was unavailable, the pod is ready again days after its scheduling: that was not its start-up
time.
"""


def seconds_to_ready(pod: KubeObject) -> float | None:
    """Seconds until a pod was ready; None if it is not ready, or if its start does not count.

    A restarted container delays readiness for other reasons.
    """
    if not objects.is_true(pod, "Ready") or any(each.get("restartCount") for each in container_statuses(pod)):
        return None
    # If a node is unavailable for a while, its pods become ready again later, but their containers stay ready.
    serving = "ContainersReady" if objects.condition(pod, "ContainersReady") else "Ready"
    conditions = (objects.condition(pod, each) or {} for each in ("PodScheduled", serving))
    begun, ended = (times.moment(each.get("lastTransitionTime")) for each in conditions)
    if begun is None or ended is None:
        return None
    seconds = (ended - begun).total_seconds()
    return seconds if 0 <= seconds <= LONGEST else None


class StartupTimes:
    """The measured starts of one pool; a measurement outlives its pod."""

    def __init__(self) -> None:
        self._counted: set[str] = set()
        self._seconds: deque[float] = deque(maxlen=REMEMBERED)

    def learn(self, pods: Iterable[KubeObject]) -> None:
        """Measure pods that became ready. Each pod counts once: a pod that becomes ready again did not start."""
        present = {
            str(pod["metadata"].get("uid") or pod["metadata"]["name"]): pod for pod in sorted(pods, key=_created)
        }
        for uid, pod in present.items():
            if uid not in self._counted and (seconds := seconds_to_ready(pod)) is not None:
                self._counted.add(uid)
                self._seconds.append(seconds)
        if len(self._counted) > 8 * REMEMBERED:
            self._counted &= present.keys()

    @property
    def seconds(self) -> float | None:
        """The median start; None where no start was observed."""
        return median(self._seconds) if self._seconds else None


def _created(pod: KubeObject) -> str:
    return str(pod["metadata"].get("creationTimestamp") or "")
