"""Kubernetes Events and CloudEvents about DynamoNimRequests."""

from datetime import datetime

from dynamo_shared.api import objects
from dynamo_shared.api.legacy import BuildPhase
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.runtime.facts import EventReason, Fact
from dynamo_shared.wire.specifications.image import ImageData

from dynamo_image_builder.status import WAITING, BuildProgress, status_of

BUILDING = EventReason("ImageBuilding", "A Job builds the image of a DynamoNimRequest.", action="Build")
WAITS = EventReason("ImageWaiting", "A DynamoNimRequest waits for other builds of its namespace.", action="Build")
READY = EventReason("ImageReady", "The image of a DynamoNimRequest is in the registry.", action="Build")
OBSTACLE = EventReason("", "A DynamoNimRequest waits or failed.", "Warning", "Build", "Ready")

#: Reason of the conditions -> reason of the Event; all others are obstacles.
_ORDERLY = {"Building": BUILDING, WAITING: WAITS, "Built": READY}
#: Phase -> event.
_EVENTS = {BuildPhase.BUILDING: "building", BuildPhase.READY: "ready", BuildPhase.FAILED: "failed"}


def changed(request: KubeObject, status: KubeObject, state: BuildProgress) -> Fact:
    """A request entered a phase, or its reason changed; `status` is about to be written."""
    reason = _ORDERLY.get(state.reason) or OBSTACLE.named(state.reason)
    return reason(state.message, _EVENTS.get(state.phase), image_data(request, status, state), state.reason)


def reconcile_failed(request: KubeObject, message: str, now: datetime) -> tuple[KubeObject, Fact]:
    """The status and the fact of a reconcile that raised an error. The request begins again."""
    state = BuildProgress(BuildPhase.FAILED, "ReconcileFailed", message)
    status = status_of(request, state, now)
    return status, changed(request, status, state)


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
