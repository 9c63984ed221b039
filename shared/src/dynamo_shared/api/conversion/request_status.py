"""Status of a DynamoGraphDeploymentRequest: states against phases, and where the result stands."""

from __future__ import annotations

from typing import Any

from dynamo_shared.api.conversion.pod import filled
from dynamo_shared.api.conversion.status import conditions_of

PENDING, READY, DEPLOYED = "Pending", "Ready", "Deployed"
#: v1beta1's phase of a v1alpha1 state. A graph that was deleted leaves a specification that is ready.
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


def status_to_beta(status: dict[str, Any]) -> dict[str, Any]:
    """v1beta1 status of a v1alpha1 one."""
    result = _common(status)
    deployment = status.get("deployment")
    deployment = deployment if isinstance(deployment, dict) else {}
    state = status.get("state", "")
    phase = _PHASES.get(state) if isinstance(state, str) else None
    if phase:
        made = state == READY and deployment.get("created") is True
        result["phase"] = DEPLOYED if made else phase
    if filled(deployment.get("name"), str):
        result["dgdName"] = deployment["name"]
    graph = status.get("generatedDeployment")
    if isinstance(graph, dict):
        result["profilingResults"] = {"selectedConfig": graph}
    return result


def status_to_alpha(status: dict[str, Any]) -> dict[str, Any]:
    """v1alpha1 status of a v1beta1 one; it always has a state."""
    result = _common(status)
    phase = status.get("phase")
    if phase in (READY, DEPLOYED):
        result["state"] = READY
    else:
        result["state"] = _STATES.get(phase, PENDING) if isinstance(phase, str) else PENDING
    deployment: dict[str, Any] = {}
    if filled(status.get("dgdName"), str):
        deployment["name"] = status["dgdName"]
    if phase == DEPLOYED:
        deployment["created"] = True
    if deployment:
        result["deployment"] = {"state": "successful" if phase == DEPLOYED else "initializing", **deployment}
    results = status.get("profilingResults")
    graph = results.get("selectedConfig") if isinstance(results, dict) else None
    if isinstance(graph, dict):
        result["generatedDeployment"] = graph
    return result


def _common(status: dict[str, Any]) -> dict[str, Any]:
    result = {"observedGeneration": status["observedGeneration"]} if "observedGeneration" in status else {}
    conditions = conditions_of(status)
    if conditions is not None:
        result["conditions"] = conditions
    return result
