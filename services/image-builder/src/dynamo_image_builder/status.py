"""Status of a DynamoNimRequest. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dynamo_shared.api import objects
from dynamo_shared.api.conditions import Condition, condition_of, find
from dynamo_shared.api.legacy import BuildPhase
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey

from dynamo_image_builder.builds import DIGEST, BentoTag, Build, ImageTarget
from dynamo_image_builder.outcome import ObservedBuild

#: Index of requests by their build's Job.
BY_JOB = "job"
READY, PROGRESSING, FAILED = "Ready", "Progressing", "Failed"
#: Reason of a request whose namespace runs as many builds as it may.
WAITING = "Waiting"
#: Reasons of a request whose Job cannot be created now.
NO_NAMESPACE, REFUSED, NO_WEBHOOK = "NoBuildNamespace", "RefusedByApiServer", "WebhookUnavailable"
#: The advice for a build that failed permanently.
_AGAIN = "to try again, delete this request and create it"


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """Phase of a request, and its reason."""

    phase: BuildPhase
    reason: str
    message: str


def status_of(
    request: KubeObject,
    state: BuildProgress,
    now: datetime,
    *,
    build: Build | None = None,
    observed: ObservedBuild | None = None,
    namespace: str = "",
    cached: bool | None = None,
) -> KubeObject:
    """The status of a request in this state. `namespace` is the namespace of the build's Job."""
    status: KubeObject = {
        "phase": state.phase.value,
        "observedGeneration": objects.generation(request),
        "conditions": _conditions(request, state, now),
    }
    if build is not None:
        status |= {"image": build.target.pull, "archiveDigest": build.archive_digest, "job": f"{namespace}/{build.job}"}
    if cached is not None:
        status["cached"] = cached
    if observed is None or observed.done is None:
        return status
    if build is not None and observed.done:
        status |= {"digest": observed.digest, "imageRef": build.image_ref(observed.digest)}
    if observed.log:
        status["log"] = observed.log
    if observed.duration is not None and not cached:
        status["durationSeconds"] = observed.duration
    return status


def state_of(observed: ObservedBuild) -> BuildProgress:
    """The state of the requests of a build."""
    if observed.done is None:
        return BuildProgress(BuildPhase.BUILDING, observed.reason, observed.message)
    if observed.done:
        return BuildProgress(BuildPhase.READY, observed.reason, observed.message)
    return BuildProgress(BuildPhase.FAILED, observed.reason, f"{observed.message}; {_AGAIN}")


def is_settled(request: KubeObject) -> bool:
    """Whether the request has its answer: its image, or a failed build."""
    status = _current(request)
    phase = status.get("phase")
    return phase == BuildPhase.READY or (phase == BuildPhase.FAILED and bool(status.get("job")))


def is_waiting(request: KubeObject) -> bool:
    """Whether the request waits to begin a build: for others of its namespace, or because its Job is refused."""
    return reason_of(_current(request))[1] in (WAITING, NO_NAMESPACE, REFUSED, NO_WEBHOOK)


def build_under_way(
    request: KubeObject, tag: BentoTag, target: ImageTarget, *, estargz: bool, namespace: str
) -> Build | None:
    """The build that the status names; None if there is none, or if settings have changed since."""
    status = _current(request)
    if status.get("phase") != BuildPhase.BUILDING or not status.get("archiveDigest"):
        return None
    build = Build(tag, status["archiveDigest"], target, estargz)
    return build if status.get("job") == f"{namespace}/{build.job}" else None


def job_of(request: KubeObject) -> ObjectKey | None:
    """The Job that a request's status names, or None."""
    namespace, _, name = str((request.get("status") or {}).get("job") or "").partition("/")
    return ObjectKey(namespace, name) if name else None


def known_digest(requests: Sequence[KubeObject]) -> str:
    """The image's digest from requests for the same build; "" if no request has it."""
    statuses = (each.get("status") or {} for each in requests)
    digests = (str(each.get("digest", "")) for each in statuses if each.get("phase") == BuildPhase.READY)
    return next((each for each in digests if DIGEST.fullmatch(each)), "")


def reason_of(status: KubeObject) -> tuple[str, str]:
    """Phase and reason of a status."""
    ready = find(status.get("conditions") or (), READY)
    return status.get("phase", ""), ready["reason"] if ready is not None else ""


def _current(request: KubeObject) -> KubeObject:
    """The status, if it is about the current generation of the request."""
    status: KubeObject = request.get("status") or {}
    return status if status.get("observedGeneration") == objects.generation(request) else {}


def _conditions(request: KubeObject, state: BuildProgress, now: datetime) -> list[Condition]:
    held = {
        READY: state.phase is BuildPhase.READY,
        PROGRESSING: state.phase in (BuildPhase.PENDING, BuildPhase.BUILDING),
        FAILED: state.phase is BuildPhase.FAILED,
    }
    return [condition_of(request, type_, is_so, state.reason, state.message, now=now) for type_, is_so in held.items()]
