"""The profiler's reports: reasons of Kubernetes Events, and CloudEvents about requests."""

from dynamo_shared.api.conditions import find
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.runtime.facts import NOTHING, EventReason, Fact
from dynamo_shared.wire.specifications.planning import RequestData
from msgspec.structs import replace

INITIALIZED = EventReason("Initialized", "The hardware for planning is known.")
VALIDATION_FAILED = EventReason("ValidationFailed", "The spec of a request cannot be profiled.", "Warning")
SPEC_CHANGE_REJECTED = EventReason(
    "SpecChangeRejected", "The spec of a request changed after profiling began.", "Warning"
)
PROFILING_JOB_CREATED = EventReason("ProfilingJobCreated", "A profiling Job runs on the cluster.")
PROFILING_JOB_FAILED = EventReason("ProfilingJobFailed", "The profiling Job could not be created.", "Warning")
PROFILING_FAILED = EventReason("ProfilingCheckFailed", "Profiling failed.", "Warning")
SPEC_GENERATED = EventReason("SpecGenerated", "The graph of a request is selected.")
REMARK = EventReason("", "A remark on the selected graph.", "Warning", condition="a condition of the same name")
CONFIG_MAPS_FAILED = EventReason(
    "ConfigMapCreationFailed", "The ConfigMaps of a request's graph could not be created.", "Warning"
)
DEPLOYMENT_CREATED = EventReason("DeploymentCreated", "The graph of a request was created.")
DEPLOYMENT_CREATION_FAILED = EventReason(
    "DeploymentCreationFailed", "The graph of a request could not be created; the platform retries.", "Warning"
)
DEPLOYMENT_REJECTED = EventReason("DeploymentRejected", "The graph of a request cannot be created.", "Warning")
DEPLOYMENT_READY = EventReason("DeploymentReady", "The graph of a request is serving.")
DEPLOYMENT_DEGRADED = EventReason("DeploymentDegraded", "The graph of a request is no longer serving.", "Warning")
DEPLOYMENT_DELETED = EventReason("DeploymentDeleted", "The graph of a request was deleted.", "Warning")
RECONCILE_FAILED = EventReason(
    "ReconcileFailed", "The reconcile of a request failed unexpectedly; the platform retries.", "Warning"
)
IMAGE_PULL_FAILED = EventReason("ImagePullFailed", "Images of a request's graph cannot be pulled.", "Warning")


def request_changed(obj: KubeObject, status: KubeObject) -> Fact:
    """A request's status is about to be written. Reported only if the phase, the profiling step or the reason changed."""
    data = request_data(obj, status)
    before = request_data(obj, obj.get("status") or {})
    if (data.phase, data.profiling_phase, data.reason) == (before.phase, before.profiling_phase, before.reason):
        return NOTHING
    return Fact(event=data.phase.lower(), data=data, identity=f"{data.reason}.{data.profiling_phase}")


def reconcile_failed(obj: KubeObject, status: KubeObject, message: str) -> Fact:
    """A reconcile failed; the request stays in its phase."""
    data = replace(request_data(obj, status), reason=RECONCILE_FAILED.name, message=message)
    return RECONCILE_FAILED(message, data.phase.lower(), data, data.reason)


def request_gone(obj: KubeObject) -> Fact:
    """A request was deleted."""
    return Fact(event="deleted", data=request_data(obj, obj.get("status") or {}))


def request_data(obj: KubeObject, status: KubeObject) -> RequestData:
    """Data of a request's event. Reason and message come from the Succeeded condition."""
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
