"""Events about pods that do not start or are not created, listed only then: they are too many to be watched."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.untrusted import times
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import KubeError
from dynamo_shared.kube.events import last_observed, newest_refusal, warnings_about
from dynamo_shared.lru import LruCache

from dynamo_pod_builder.status.pods import NAMED, NOT_STARTED, Rank, Trouble
from dynamo_pod_builder.status.start_events import explained
from dynamo_pod_builder.status.workload import refusal

log = structlog.get_logger("dynamo.pod-builder.events")


#: A component and its graph list the same Events in succession: for this long, one answer serves both. It is shorter
#: than the interval after which a component lists again. Seconds.
KEPT = 10.0
#: Answers that are kept, and Events of each: the newest. Anyone may write 256 KiB of Events about each pod.
_MOST_KEPT, _NEWEST = 1000, 16


@dataclass(frozen=True, slots=True)
class PodEvents:
    """Reads the Events of the pods that a message names."""

    kube: KubeClient
    clock: Callable[[], float] = time.monotonic
    #: The time of the last list and its answer, by namespace and field selector.
    _known: LruCache[tuple[str, str], tuple[float, Sequence[KubeObject]]] = field(
        default_factory=lambda: LruCache(_MOST_KEPT)
    )

    async def explain(
        self, namespace: str, troubles: Sequence[Trouble], workload: KubeObject | None = None, lacking: str = ""
    ) -> list[Trouble]:
        """The same troubles, with the Events of pods that do not start; at most three pods are queried.

        If the Events of the workload's StatefulSet `lacking` say why its pods are not created, that is added.
        """
        result = await self.refused(workload, "StatefulSet", lacking) if workload is not None and lacking else []
        asked = 0
        for trouble in troubles:
            if trouble.reason == NOT_STARTED and asked < NAMED:
                asked += 1
                trouble = await self._explained(namespace, trouble)  # noqa: PLW2901
            result.append(trouble)
        return sorted(result)

    async def refused(self, workload: KubeObject, kind: str, name: str) -> list[Trouble]:
        """Why the object of this kind and name, which creates the pods of a workload, cannot do so; [] if no Event says it."""
        # Its uid is not known here; Events of an earlier workload are older than this workload.
        since = times.moment(objects.created_at(workload)) or times.EARLIEST
        events = await self._about(objects.namespace(workload), f"regarding.kind={kind},regarding.name={name}")
        newest = newest_refusal(events)
        if newest is None or (times.moment(last_observed(newest)) or times.LATEST) < since:
            return []
        words = str(newest.get("note", "")).rpartition("failed error: ")[2].removeprefix("Error creating: ")
        reason, words = refusal(words)
        return [Trouble(Rank.REFUSED, reason, f"of {name}", words)]

    async def _explained(self, namespace: str, trouble: Trouble) -> Trouble:
        # By uid: pods of a StatefulSet reuse names, and Events outlive pods.
        return explained(trouble, await self._about(namespace, f"regarding.uid={trouble.uid}"))

    async def _about(self, namespace: str, involved: str) -> Sequence[KubeObject]:
        at, known = self._known.get((namespace, involved), (0.0, None))
        if known is not None and self.clock() - at < KEPT:
            return known
        try:
            answer = await warnings_about(self.kube, namespace, involved)
        except KubeError as error:
            # The message then has only what the statuses say.
            log.warning("cannot list events", namespace=namespace, involved=involved, error=str(error))
            return ()
        answer = list(map(_read, sorted(answer, key=last_observed)[-_NEWEST:]))
        if answer:
            # An empty answer is not kept: an Event may appear at any moment.
            self._known[namespace, involved] = (self.clock(), answer)
        return answer


def _read(event: KubeObject) -> KubeObject:
    """The parts of an Event that are read. Its note has at most 1024 characters, unless its author used core/v1."""
    return {
        "type": event.get("type"),
        "reason": event.get("reason"),
        "note": str(event.get("note", ""))[:1024],
        "eventTime": last_observed(event),
    }
