"""Every Event and every NATS event about adapters, in one place."""

from __future__ import annotations

from collections.abc import Sequence

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.bus import EventPublisher
from dynamo_shared.bus.specifications import SCALING_ADAPTER, ScalingAdapterData
from dynamo_shared.kube.event_series import EventType
from dynamo_shared.kube.events import EventRecorder


class AdapterReporter:
    """Reports changes of an adapter's number to users (Kubernetes Events) and programs (NATS)."""

    def __init__(self, recorder: EventRecorder, publisher: EventPublisher) -> None:
        self._recorder = recorder
        self._publisher = publisher

    def scaled(self, adapter: KubeObject, component: str, before: int, writer: str) -> None:
        """A graph was given an adapter's number; `before` is what it had, `writer` is "" where it is unknown."""
        now = adapter["spec"]["replicas"]
        message = f"Scaled component {component} from {before} to {now} replicas"
        if writer:
            message += f", as {writer} asked"
        self._record(adapter, "Normal", "Scaled", "Scale", message)
        self._publish("scaled", adapter, ("Scaled", message), before, [writer] if writer else [])

    def conflict(self, adapter: KubeObject, reason: str, message: str, before: int, writers: Sequence[str]) -> None:
        """Another client sets the number, too. `writers`: the adapter's first."""
        self._record(adapter, "Warning", reason, "Scale", message)
        self._publish("conflict", adapter, (reason, message), before, writers)

    def failed(self, adapter: KubeObject, reason: str, message: str) -> None:
        """An adapter cannot do its work."""
        self._record(adapter, "Warning", reason, "Scale", message)
        self._publish("failed", adapter, (reason, message), adapter["spec"]["replicas"], [])

    def autoscaled(self, adapter: KubeObject, done: str, what: str) -> None:
        """An autoscaler of an adapter was made, changed or removed; `done` is Created, Updated or Deleted."""
        self._record(adapter, "Normal", f"Autoscaler{done}", "Autoscale", f"{done} {what}")

    def _record(self, adapter: KubeObject, type_: EventType, reason: str, action: str, message: str) -> None:
        self._recorder.record(adapter, type_=type_, reason=reason, message=message, action=action)

    def _publish(
        self, event: str, adapter: KubeObject, why: tuple[str, str], before: int, writers: Sequence[str]
    ) -> None:
        reason, message = why
        metadata, spec = adapter["metadata"], adapter["spec"]
        data = ScalingAdapterData(
            name=metadata["name"],
            namespace=metadata.get("namespace", ""),
            graph_deployment=spec["dgdRef"]["name"],
            component=spec["dgdRef"]["componentName"],
            previous_replicas=before,
            replicas=spec["replicas"],
            writers=list(writers),
            reason=reason,
            message=message,
            generation=str(metadata.get("generation", 0)),
        )
        self._publisher.publish(kind=SCALING_ADAPTER, obj=adapter, event=event, reason=reason, data=data)
