"""Converts the status of a DynamoGraphDeploymentRequest: states and phases, and the location of the result."""

from typing import Any

from dynamo_shared.api.conversion.pod import filled
from dynamo_shared.api.conversion.status import conditions_of
from dynamo_shared.api.untrusted.reading import items, mapping, text

PENDING, READY, DEPLOYED = "Pending", "Ready", "Deployed"
#: The v1beta1 phase by v1alpha1 state. After the deletion of its graph, a request is ready.
_PHASES = {
    "": PENDING,
    "Initializing": PENDING,
    "Pending": PENDING,
    "Profiling": "Profiling",
    "Deploying": "Deploying",
    "Ready": READY,
    "DeploymentDeleted": READY,
    "Failed": "Failed",
}
_STATES = {"Pending": PENDING, "Profiling": "Profiling", "Deploying": "Deploying", "Failed": "Failed"}
INITIALIZING, DELETED = "Initializing", "DeploymentDeleted"
#: The v1beta1 condition about the graph of a request, and those of its reasons that determine the state.
GRAPH_CONDITION, CREATION_FAILED, REJECTED = "DeploymentReady", "DeploymentCreationFailed", "DeploymentRejected"
#: Locations of profiling results in v1alpha1: the ConfigMap of a Job, or the status.
JOB_PREFIX, OUTPUT_PREFIX, IN_STATUS = "profile-", "configmap/dgdr-output-", "status.generatedDeployment"


def status_to_beta(status: dict[str, Any]) -> dict[str, Any]:
    """The v1beta1 form of a v1alpha1 status."""
    result = _common(status)
    deployment, state = mapping(status.get("deployment")), status.get("state", "")
    phase = _PHASES.get(state) if isinstance(state, str) else None
    if phase:
        deployed = state == READY and deployment.get("created") is True
        lost = state == DELETED and _reason(status) == DELETED
        result["phase"] = DEPLOYED if deployed else "Failed" if lost else phase
    if filled(deployment.get("name"), str):
        result["dgdName"] = deployment["name"]
    graph = status.get("generatedDeployment")
    if isinstance(graph, dict):
        result["profilingResults"] = {"selectedConfig": graph}
    results = text(status.get("profilingResults"))
    if results.startswith(OUTPUT_PREFIX):
        result["profilingJobName"] = f"{JOB_PREFIX}{results.removeprefix(OUTPUT_PREFIX)}"
    return result


def status_to_alpha(status: dict[str, Any], namespace: str | None = None) -> dict[str, Any]:
    """The v1alpha1 form of a v1beta1 status, for a request in a namespace; it always has a state."""
    result = _common(status)
    phase = status.get("phase")
    result["state"] = _state(status, text(phase))
    deployment = _deployment(status, phase, namespace)
    if deployment:
        result["deployment"] = deployment
    graph = mapping(status.get("profilingResults")).get("selectedConfig")
    job = text(status.get("profilingJobName"))
    if isinstance(graph, dict):
        result["generatedDeployment"] = graph
        if backend := text(mapping(graph.get("spec")).get("backendFramework")):
            result["backend"] = backend
            result["profilingResults"] = IN_STATUS
    if job.startswith(JOB_PREFIX):
        result["profilingResults"] = f"{OUTPUT_PREFIX}{job.removeprefix(JOB_PREFIX)}"
    return result


def _state(status: dict[str, Any], phase: str) -> str:
    if phase in (READY, DEPLOYED):
        return READY
    if phase == "Failed" and _reason(status) == DELETED:
        return DELETED
    if phase in ("", PENDING) and not status.get("observedGeneration"):
        return INITIALIZING
    return _STATES.get(phase, PENDING)


def _deployment(status: dict[str, Any], phase: Any, namespace: str | None) -> dict[str, Any]:
    """The state of a request's graph; empty without a graph."""
    name = filled(status.get("dgdName"), str)
    reason = _reason(status)
    created = phase == DEPLOYED or (phase == "Deploying" and reason not in ("", CREATION_FAILED))
    if not name and not created:
        return {}
    if phase == DEPLOYED:
        state = "successful"
    elif phase == "Failed" and reason == REJECTED:
        state = "failed"
    else:
        state = "pending" if created else "initializing"
    present = {"state": state, "name": name, "namespace": namespace if name else None, "created": created or None}
    return {key: value for key, value in present.items() if value is not None}


def _reason(status: dict[str, Any]) -> str:
    """Reason of the condition about the graph; "" without one."""
    for entry in items(status.get("conditions")):
        if isinstance(entry, dict) and entry.get("type") == GRAPH_CONDITION:
            return text(entry.get("reason"))
    return ""


def _common(status: dict[str, Any]) -> dict[str, Any]:
    result = {"observedGeneration": status["observedGeneration"]} if "observedGeneration" in status else {}
    conditions = conditions_of(status)
    if conditions is not None:
        result["conditions"] = conditions
    return result
