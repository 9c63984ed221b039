"""Every Event and every NATS event that the planner reports on requests, in one place."""

from __future__ import annotations

from dynamo_shared.api.conditions import find
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.bus import EventPublisher
from dynamo_shared.bus.specifications.planning import REQUEST, RequestData
from dynamo_shared.kube.event_series import EventType
from dynamo_shared.kube.events import EventRecorder


class RequestReporter:
    """Reports to users (Kubernetes Events) and programs (NATS) what became of a request."""

    def __init__(self, recorder: EventRecorder, publisher: EventPublisher) -> None:
        self._recorder = recorder
        self._publisher = publisher

    def normal(self, obj: KubeObject, reason: str, message: str, action: str = "Reconcile") -> None:
        """Something went as it should."""
        self._record(obj, "Normal", reason, message, action)

    def warning(self, obj: KubeObject, reason: str, message: str, action: str = "Reconcile") -> None:
        """Something is wrong, or will be."""
        self._record(obj, "Warning", reason, message, action)

    def changed(self, obj: KubeObject, status: KubeObject) -> None:
        """Phase, step of profiling or the reason has changed: published on NATS."""
        data = request_data(obj, status)
        before = request_data(obj, obj.get("status") or {})
        if (data.phase, data.profiling_phase, data.reason) == (before.phase, before.profiling_phase, before.reason):
            return
        event = data.phase.lower()
        self._publisher.publish(
            kind=REQUEST, obj=obj, event=event, reason=f"{data.reason}.{data.profiling_phase}", data=data
        )

    def gone(self, obj: KubeObject) -> None:
        """The request was deleted."""
        self._publisher.publish(kind=REQUEST, obj=obj, event="deleted", data=request_data(obj, obj.get("status") or {}))

    def _record(self, obj: KubeObject, type_: EventType, reason: str, message: str, action: str) -> None:
        self._recorder.record(obj, type_=type_, reason=reason, message=message, action=action)


def request_data(obj: KubeObject, status: KubeObject) -> RequestData:
    """Data of a request's event; reason and message are those of its Succeeded condition."""
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    summary = find(status.get("conditions", []), "Succeeded") or {}
    figures = (status.get("profilingResults") or {}).get("selectedFigures") or {}
    return RequestData(
        name=metadata["name"],
        namespace=metadata["namespace"],
        phase=status.get("phase", ""),
        profiling_phase=status.get("profilingPhase", ""),
        reason=summary.get("reason", ""),
        message=summary.get("message", ""),
        generation=str(metadata.get("generation", 0)),
        model=spec.get("model", ""),
        backend=figures.get("backend") or spec.get("backend", ""),
        graph_deployment=status.get("dgdName", ""),
        figures={name: float(value) for name, value in figures.items() if type(value) in (int, float)},
    )
