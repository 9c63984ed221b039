"""Events about pods that do not start or are not created, asked for only then: they are too many, and too short-lived, to be
watched.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import EVENTS
from dynamo_shared.api.untrusted import times
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import KubeError
from dynamo_shared.kube.events import last_observed, newest_refusal
from dynamo_shared.newest import Newest

from dynamo_pod_builder.status.pods import NAMED, NOT_STARTED, Rank, Trouble
from dynamo_pod_builder.status.starting import explained
from dynamo_pod_builder.status.workload import refusal

log = structlog.get_logger("dynamo.pod-builder.events")


#: A component and its graph ask the same one after the other: so long the first answer counts for both. Less than the time
#: after which a component asks again. Seconds.
KEPT = 10.0
_MOST_KEPT = 1000


@dataclass(frozen=True, slots=True)
class PodEvents:
    """Reads the Events of the pods that a message names."""

    kube: KubeClient
    clock: Callable[[], float] = time.monotonic
    #: When it was asked about an object, by namespace and what selects its Events, and the answer.
    _known: Newest[tuple[str, str], tuple[float, Sequence[KubeObject]]] = field(
        default_factory=lambda: Newest(_MOST_KEPT)
    )

    async def explain(
        self, namespace: str, troubles: Sequence[Trouble], workload: KubeObject | None = None, lacking: str = ""
    ) -> list[Trouble]:
        """The same troubles, those of pods that do not start with what their Events say; at most three are asked for.

        With what keeps pods of the workload's StatefulSet `lacking` from being created, where that says it.
        """
        result = await self._refused(namespace, workload, lacking) if workload is not None and lacking else []
        asked = 0
        for trouble in troubles:
            if trouble.reason == NOT_STARTED and asked < NAMED:
                asked += 1
                trouble = await self._explained(namespace, trouble)  # noqa: PLW2901
            result.append(trouble)
        return sorted(result)

    async def _refused(self, namespace: str, workload: KubeObject, stateful_set: str) -> list[Trouble]:
        # Its uid is not known here; those of another workload's are older than this one.
        since = times.moment(objects.created_at(workload)) or times.EARLIEST
        events = await self._about(namespace, f"regarding.kind=StatefulSet,regarding.name={stateful_set}")
        newest = newest_refusal(events)
        if newest is None or (times.moment(last_observed(newest)) or times.LATEST) < since:
            return []
        reason, words = refusal(str(newest.get("note", "")).rpartition("failed error: ")[2])
        return [Trouble(Rank.REFUSED, reason, f"of {stateful_set}", words)]

    async def _explained(self, namespace: str, trouble: Trouble) -> Trouble:
        # By uid: pods of a StatefulSet have the names of those before them, and Events outlive pods.
        return explained(trouble, await self._about(namespace, f"regarding.uid={trouble.uid}"))

    async def _about(self, namespace: str, involved: str) -> Sequence[KubeObject]:
        at, known = self._known.get((namespace, involved), (0.0, None))
        if known is not None and self.clock() - at < KEPT:
            return known
        try:
            answer = await self.kube.list(EVENTS, namespace, field_selector=f"{involved},type=Warning")
        except KubeError as error:
            # What statuses say stands.
            log.warning("cannot list events", namespace=namespace, involved=involved, error=str(error))
            return ()
        if answer:
            # What is not said yet may be said any moment.
            self._known[namespace, involved] = (self.clock(), answer)
        return answer
