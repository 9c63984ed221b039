"""Events about pods that do not start, asked for only then: they are too many, and too short-lived, to be watched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from dynamo_shared.api.resources import EVENTS, PODS
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import KubeError

from dynamo_pod_builder.status.pods import NAMED, NOT_STARTED, Trouble
from dynamo_pod_builder.status.starting import explained

log = structlog.get_logger("dynamo.pod-builder.events")


@dataclass(frozen=True, slots=True)
class PodEvents:
    """Reads the Events of the pods that a message names."""

    kube: KubeClient

    async def explain(self, namespace: str, troubles: Sequence[Trouble]) -> list[Trouble]:
        """The same troubles, those of pods that do not start with what their Events say; at most three are asked for."""
        result: list[Trouble] = []
        asked = 0
        for trouble in troubles:
            if trouble.reason == NOT_STARTED and asked < NAMED:
                asked += 1
                trouble = await self._explained(namespace, trouble)  # noqa: PLW2901
            result.append(trouble)
        return sorted(result)

    async def _explained(self, namespace: str, trouble: Trouble) -> Trouble:
        about = f"regarding.kind={PODS.kind},regarding.name={trouble.pod},type=Warning"
        try:
            events = await self.kube.list(EVENTS, namespace, field_selector=about)
        except KubeError as error:
            # What the pod's own status says stands.
            log.warning("cannot list events", namespace=namespace, pod=trouble.pod, error=str(error))
            return trouble
        return explained(trouble, events.items)
