"""Every Event and every NATS event about DynamoNimRequests, in one place."""

from __future__ import annotations

from dynamo_shared.api import objects
from dynamo_shared.api.legacy import BuildPhase
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.bus import EventPublisher
from dynamo_shared.bus.specifications.image import NIM_REQUEST, ImageData
from dynamo_shared.kube.events import EventRecorder

from dynamo_image_builder.metrics import BuildMetrics
from dynamo_image_builder.status import BuildProgress

#: Phase -> event.
_EVENTS = {BuildPhase.BUILDING: "building", BuildPhase.READY: "ready", BuildPhase.FAILED: "failed"}
#: Reasons of builds that go well; all others are warnings.
_ORDERLY = frozenset({"Building", "Built"})


class BuildReporter:
    """Reports builds to users (Kubernetes Events), programs (NATS) and Prometheus."""

    def __init__(self, recorder: EventRecorder, publisher: EventPublisher, metrics: BuildMetrics) -> None:
        self._recorder = recorder
        self._publisher = publisher
        self._metrics = metrics

    def changed(self, request: KubeObject, status: KubeObject, state: BuildProgress) -> None:
        """A request entered a phase, or is in it for another reason now; `status` is about to be written."""
        type_ = "Normal" if state.reason in _ORDERLY else "Warning"
        self._recorder.record(
            request,
            type_="Normal" if type_ == "Normal" else "Warning",
            reason=f"Image{state.phase.value}" if state.reason in _ORDERLY else state.reason,
            message=state.message,
            action="Build",
        )
        if event := _EVENTS.get(state.phase):
            data = image_data(request, status, state)
            self._publisher.publish(kind=NIM_REQUEST, obj=request, event=event, reason=state.reason, data=data)
        if state.phase is BuildPhase.READY:
            self._metrics.answered(objects.namespace(request), "cached" if status.get("cached") else "built")
        elif state.phase is BuildPhase.FAILED:
            self._metrics.answered(objects.namespace(request), "failed")


def image_data(request: KubeObject, status: KubeObject, state: BuildProgress) -> ImageData:
    """Data of an event about a request."""
    return ImageData(
        name=objects.name(request),
        namespace=objects.namespace(request),
        bento_tag=str((request.get("spec") or {}).get("bentoTag", "")),
        phase=state.phase.value,
        reason=state.reason,
        message=state.message,
        generation=str(objects.generation(request)),
        image=status.get("image", ""),
        digest=status.get("digest", ""),
        archive_digest=status.get("archiveDigest", ""),
        cached=bool(status.get("cached")),
        duration_seconds=status.get("durationSeconds", 0),
        job=status.get("job", ""),
    )
