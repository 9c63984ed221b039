"""How long workers take to start, measured on those that did. Pure.

From the moment a pod has a node until it is ready: waiting for a node is counted apart (`PoolCounts.pending`), and says
nothing of the next start where there is room.
"""

from collections import deque
from collections.abc import Iterable
from statistics import median

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import container_statuses
from dynamo_shared.api.untrusted import times

REMEMBERED = 32
"""Starts; older ones may have had other images and models."""
LONGEST = 7200.0
"""Seconds. A pod whose node was away is ready again days after it was given the node: it did not take so long to start."""


def seconds_to_ready(pod: KubeObject) -> float | None:
    """Seconds that a pod took to be ready; None where it is not, or started in a way that does not count.

    A container that was restarted became ready late for reasons of its own.
    """
    ready, scheduled = objects.condition(pod, "Ready"), objects.condition(pod, "PodScheduled")
    if not ready or ready["status"] != "True" or not scheduled or scheduled["status"] != "True":
        return None
    if any(each.get("restartCount") for each in container_statuses(pod)):
        return None
    # Where a node is away for a while, its pods become ready again, and their containers stay so.
    serving = objects.condition(pod, "ContainersReady") or ready
    begun, ended = (times.moment(each.get("lastTransitionTime")) for each in (scheduled, serving))
    if begun is None or ended is None:
        return None
    seconds = (ended - begun).total_seconds()
    return seconds if 0 <= seconds <= LONGEST else None


class StartupTimes:
    """The measured starts of one pool; pods that go do not take their measurement with them."""

    def __init__(self) -> None:
        self._counted: set[str] = set()
        self._seconds: deque[float] = deque(maxlen=REMEMBERED)

    def learn(self, pods: Iterable[KubeObject]) -> None:
        """Measure pods that are ready and were not before. Each counts once: one that is ready again later did not start."""
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
