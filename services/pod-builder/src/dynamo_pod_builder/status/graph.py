"""Status of a DynamoGraphDeployment, from its components (reference behaviour, section 1.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dynamo_shared.api import objects
from dynamo_shared.api.conditions import Condition, condition_of
from dynamo_shared.api.gpus import GpuShape
from dynamo_shared.api.v1beta1.enums import UNFINISHED_UPDATE

from dynamo_pod_builder.status.component import PREDECESSOR_REMAINS, Failure
from dynamo_pod_builder.status.pods import Trouble
from dynamo_pod_builder.status.workload import WorkloadReadiness, readiness, replicas_of, why_not, with_gpus

INITIALIZING, PENDING, SUCCESSFUL, FAILED = "initializing", "pending", "successful", "failed"
READY = "Ready"

ALL_READY = "all_resources_are_ready"
SOME_NOT_READY = "some_resources_are_not_ready"
FAILED_TO_RECONCILE = "failed_to_reconcile_the_resources"
ROLLING_UPDATE = "rolling_update_in_progress"
WAITING_FOR_CHECKPOINT = "waiting_for_checkpoint"
#: The reference's reasons. An obstacle that may not pass by itself is reported instead: `ImagePullBackOff`.
ROUTINE = frozenset({ALL_READY, SOME_NOT_READY, FAILED_TO_RECONCILE, ROLLING_UPDATE, WAITING_FOR_CHECKPOINT})


@dataclass(frozen=True, slots=True)
class Generation:
    """One workload of a component: the present one (`current`), or a leftover that a rolling update drains."""

    name: str
    workload: dict[str, Any] | None
    current: bool = True
    failure: Failure | None = None
    #: Troubles of its pods.
    troubles: Sequence[Trouble] = ()
    #: Whether the workload comes from the component's present spec, not from an earlier one.
    observed: bool = True
    #: Its component deployment or set, if being deleted: its pods are deleted with it, and then it is created again.
    leaving: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class GraphOutcome:
    """The result of one reconcile of a graph."""

    components: Mapping[str, Sequence[Generation]]
    failure: Failure | None = None
    rolling_update: dict[str, Any] | None = None
    #: What the rolling update waits for, if no component reports it.
    rollout_waits: Sequence[str] = ()
    carried: Mapping[str, Any] = field(default_factory=dict)
    #: Components of which no pod starts before their checkpoint is ready, with its name, or "" if that is unknown.
    awaited: Mapping[str, str] = field(default_factory=dict)
    #: Further conditions, which only some graphs have.
    conditions: Sequence[Condition] = ()
    #: What each component requests, if known.
    gpus: Mapping[str, GpuShape] = field(default_factory=dict)


def graph_status(graph: dict[str, Any], outcome: GraphOutcome, now: datetime) -> dict[str, Any]:
    """The whole `status` of a DGD. Fields in `carried` (restart, checkpoints) come from elsewhere, and are unchanged."""
    state, reason, message = _verdict(outcome)
    status: dict[str, Any] = {
        **outcome.carried,
        "state": state,
        "observedGeneration": objects.generation(graph),
        "conditions": [
            condition_of(graph, READY, state == SUCCESSFUL, reason, message, now=now),
            *outcome.conditions,
        ],
    }
    replicas = {
        name: with_gpus(merged, outcome.gpus.get(name))
        for name, parts in outcome.components.items()
        if (merged := _merged(parts)) is not None
    }
    if replicas:
        status["components"] = replicas
    if outcome.rolling_update is not None:
        status["rollingUpdate"] = outcome.rolling_update
    return status


def _about(component: str, failure: Failure) -> str:
    """A failure of a component, for the message of its graph. A message of rendering already begins with the component."""
    prefix = f"component {component}: "
    return f"{prefix}{failure.reason}: {failure.message.removeprefix(prefix)}"


def _of_graph(failure: Failure) -> str:
    """A failure of the graph, with its reason at the same position: the condition has one reason for all failures."""
    about, separator, problem = failure.message.partition(": ")
    if separator and about.startswith("component "):
        return f"{about}: {failure.reason}: {problem}"
    return f"{failure.reason}: {failure.message}"


def _verdict(outcome: GraphOutcome) -> tuple[str, str, str]:
    """State, reason and message. Failures come before waiting: users should not wait for what will never become ready."""
    failure = outcome.failure
    failures = [_of_graph(failure)] if failure is not None and not failure.passes else []
    failures += [
        _about(name, part.failure)
        for name, parts in outcome.components.items()
        for part in parts
        if part.current and part.failure is not None and not part.failure.passes and part.failure != failure
    ]
    if failures:
        return FAILED, FAILED_TO_RECONCILE, "; ".join(dict.fromkeys(failures))
    if not outcome.components:
        return FAILED, FAILED_TO_RECONCILE, "spec.components is empty: name at least one component to deploy"
    if outcome.awaited:
        # The reference's message (Dynamo 1.5, `applyCheckpointStartupReadiness`).
        named = (
            f"{name} ({checkpoint})" if checkpoint else name for name, checkpoint in sorted(outcome.awaited.items())
        )
        return PENDING, WAITING_FOR_CHECKPOINT, f"Waiting for checkpoints: {', '.join(named)}"
    states = [(failure.message, failure.warning)] if failure is not None else []
    states += [
        (f"{name}: {state.message}", state.reason)
        for name, parts in sorted(outcome.components.items())
        for part in parts
        if part.current and not (state := _state(part)).ready
    ]
    waiting = [words for words, _ in states]
    stuck = [words for words, reason in states if reason]
    reason = next((reason for _, reason in states if reason), "")
    if outcome.rolling_update is not None and outcome.rolling_update.get("phase") in UNFINISHED_UPDATE:
        return (
            PENDING,
            reason or ROLLING_UPDATE,
            "; ".join(["new worker pods are replacing the old ones", *outcome.rollout_waits, *stuck]),
        )
    if not waiting:
        # Between two components of a restart all serve, but the restart has not ended.
        waiting = [
            f"{name}: its restart begins" for name in (outcome.carried.get("restart") or {}).get("inProgress", ())
        ]
    if waiting:
        return PENDING, reason or SOME_NOT_READY, "Resources not ready: " + "; ".join(waiting)
    return SUCCESSFUL, ALL_READY, "All resources are ready"


def _state(part: Generation) -> WorkloadReadiness:
    if part.leaving is not None:
        named, finalizers = objects.name(part.leaving), ", ".join(part.leaving["metadata"]["finalizers"])
        words = f"waiting until Kubernetes has deleted {part.leaving['kind']} {named}, which still has finalizers: {finalizers}"
        return WorkloadReadiness(False, words, PREDECESSOR_REMAINS)
    state = why_not(readiness(part.workload), part.troubles)
    if part.failure is not None and not state.reason:
        return WorkloadReadiness(False, part.failure.message, part.failure.reason)
    if state.ready and not part.observed:
        return WorkloadReadiness(False, "its controller has not acted on the latest change yet")
    return state


def _merged(parts: Sequence[Generation]) -> dict[str, Any] | None:
    """Replica status of a component: sums over old and new workloads, `updatedReplicas` of the new ones only (1.8)."""
    counted = [(part, replicas) for part in parts if (replicas := replicas_of(part.workload)) is not None]
    if not counted:
        return None
    # If a component changed to or from several nodes, its present kind is reported.
    kind = next(
        (replicas["componentKind"] for part, replicas in counted if part.current), counted[0][1]["componentKind"]
    )
    merged: dict[str, Any] = {
        "componentKind": kind,
        "componentNames": sorted(name for _, replicas in counted for name in replicas["componentNames"]),
        "updatedReplicas": sum(replicas["updatedReplicas"] for part, replicas in counted if part.current),
    }
    for count in ("replicas", "readyReplicas", "availableReplicas"):
        if any(count in replicas for _, replicas in counted):
            merged[count] = sum(replicas.get(count, 0) for _, replicas in counted)
    return merged
