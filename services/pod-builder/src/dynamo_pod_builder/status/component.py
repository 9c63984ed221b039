"""Status of a DynamoComponentDeployment, computed from its workload (reference behaviour, sections 2.1 to 2.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dynamo_shared.api import objects
from dynamo_shared.api.conditions import condition_of, find
from dynamo_shared.api.gpus import GpuShape
from dynamo_shared.api.resources import DEPLOYMENTS
from dynamo_shared.api.untrusted import times

from dynamo_pod_builder.status.pods import Trouble
from dynamo_pod_builder.status.workload import readiness, replicas_of, why_not, with_gpus

AVAILABLE = "Available"
COMPONENT_READY = "DynamoComponentReady"
#: The suffix of reasons that only need time.
NOT_READY = "NotReady"
#: Reasons of objects that cannot be created; objects with other reasons may become ready by themselves.
FAILURES = frozenset({"InvalidSpec", "NotDeployable", "NameTaken", "RefusedByApiServer"})
#: Obstacles that end without a change of the component. The first ends by itself.
PREDECESSOR_REMAINS, WEBHOOK_UNAVAILABLE = "PredecessorRemains", "WebhookUnavailable"
#: The component has no pods before its checkpoint is ready.
WAITING = "WaitingForCheckpoint"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a component cannot be created; if `reason` is one of `FAILURES`, until a user changes something."""

    reason: str
    message: str

    @property
    def passes(self) -> bool:
        """Whether it ends without a change of the component."""
        return self.reason in (PREDECESSOR_REMAINS, WEBHOOK_UNAVAILABLE, WAITING)

    @property
    def warning(self) -> str:
        """Its reason; "" if it ends by itself, so that no warning is needed."""
        return "" if self.reason in (PREDECESSOR_REMAINS, WAITING) else self.reason


def component_status(
    component: dict[str, Any],
    workload: dict[str, Any] | None,
    failure: Failure | None,
    now: datetime,
    troubles: Sequence[Trouble] = (),
    *,
    gpus: GpuShape | None = None,
) -> dict[str, Any]:
    """The whole `status` of a DCD; `troubles`: of its pods; `gpus`: what its spec requests."""
    state = why_not(readiness(workload), troubles)
    if failure is not None:
        ready, reason, message = False, failure.reason, failure.message
    elif state.ready:
        ready, reason, message = True, f"{_kind(workload)}Ready", state.message
    else:
        ready, reason, message = False, state.reason or f"{_kind(workload)}{NOT_READY}", state.message
    conditions = [
        condition_of(component, AVAILABLE, ready, reason, message, now=now),
        condition_of(component, COMPONENT_READY, ready, f"Component{'' if ready else 'Not'}Ready", message, now=now),
    ]
    status: dict[str, Any] = {"observedGeneration": objects.generation(component), "conditions": conditions}
    if (replicas := replicas_of(workload)) is not None:
        # The GPUs of a spec that cannot be created are unknown, as with the reference.
        status["component"] = with_gpus(replicas, gpus if failure is None or failure.passes else None)
    return status


def failure_of(component: dict[str, Any]) -> Failure | None:
    """The failure in a DCD's status, if it is about the DCD's present spec."""
    if component.get("status", {}).get("observedGeneration") != objects.generation(component):
        return None
    entry = objects.condition(component, AVAILABLE)
    if entry is None or entry["reason"] not in {*FAILURES, WEBHOOK_UNAVAILABLE}:
        return None
    return Failure(entry["reason"], entry["message"])


def obstacle_of(component: dict[str, Any]) -> tuple[str, str] | None:
    """Reason and message of what prevents a DCD from serving, if it is more than pods that need time."""
    entry = objects.condition(component, AVAILABLE)
    if entry is None or entry["status"] == "True" or entry["reason"].endswith(NOT_READY):
        return None
    return entry["reason"], entry["message"]


def unavailable_since(component: dict[str, Any]) -> datetime | None:
    """Since when fewer replicas of a DCD serve than are desired; None if its status does not say so."""
    available = objects.condition(component, AVAILABLE) or {}
    return times.moment(available.get("lastTransitionTime")) if available.get("status") == "False" else None


def is_observed(component: dict[str, Any]) -> bool:
    """Whether a DCD's present spec has been acted on: until then, its workload may run an earlier spec."""
    return bool(component.get("status", {}).get("observedGeneration", 0) >= objects.generation(component))


def verdict(reported: dict[str, Any]) -> tuple[object, ...]:
    """The parts of a DCD's status whose change is announced: the reason, also of serving, and for which generation."""
    entry = find(reported.get("conditions", ()), AVAILABLE)
    return entry["reason"] if entry is not None else "", reported.get("observedGeneration")


def _kind(workload: dict[str, Any] | None) -> str:
    return str((workload or {}).get("kind", DEPLOYMENTS.kind))
