"""Events about pods that do not start or are not created, asked for only then: they are too many, and too short-lived, to be
watched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import structlog
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import EVENTS, PODS
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import KubeError
from dynamo_shared.kube.events import last_observed
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
    #: When it was asked about an object, by namespace, kind and name, and the answer.
    _known: Newest[tuple[str, str, str], tuple[float, Sequence[KubeObject]]] = field(
        default_factory=lambda: Newest(_MOST_KEPT)
    )

    async def explain(self, namespace: str, troubles: Sequence[Trouble], lacking: str = "") -> list[Trouble]:
        """The same troubles, those of pods that do not start with what their Events say; at most three are asked for.

        With what keeps pods of the StatefulSet `lacking` from being created, where that says it.
        """
        result = await self._refused(namespace, lacking) if lacking else []
        asked = 0
        for trouble in troubles:
            if trouble.reason == NOT_STARTED and asked < NAMED:
                asked += 1
                trouble = await self._explained(namespace, trouble)  # noqa: PLW2901
            result.append(trouble)
        return sorted(result)

    async def _refused(self, namespace: str, stateful_set: str) -> list[Trouble]:
        events = await self._about(namespace, "StatefulSet", stateful_set)
        newest = max((each for each in events if each.get("reason") == "FailedCreate"), key=last_observed, default=None)
        if newest is None:
            return []
        reason, words = refusal(str(newest.get("note", "")).rpartition("failed error: ")[2])
        return [Trouble(Rank.REFUSED, reason, f"of {stateful_set}", words)]

    async def _explained(self, namespace: str, trouble: Trouble) -> Trouble:
        return explained(trouble, await self._about(namespace, PODS.kind, trouble.pod))

    async def _about(self, namespace: str, kind: str, name: str) -> Sequence[KubeObject]:
        at, known = self._known.get((namespace, kind, name), (0.0, None))
        if known is not None and self.clock() - at < KEPT:
            return known
        about = f"regarding.kind={kind},regarding.name={name},type=Warning"
        try:
            answer = await self.kube.list(EVENTS, namespace, field_selector=about)
        except KubeError as error:
            # What statuses say stands.
            log.warning("cannot list events", namespace=namespace, kind=kind, name=name, error=str(error))
            return ()
        if answer:
            # What is not said yet may be said any moment.
            self._known[namespace, kind, name] = (self.clock(), answer)
        return answer
