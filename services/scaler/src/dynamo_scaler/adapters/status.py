"""Status of a scaling adapter: the fields for autoscalers, and three conditions for people. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from dynamo_shared.api import objects
from dynamo_shared.api.conditions import Condition, condition, find, timestamp
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.untrusted import times

SYNCED, CONFLICT, AUTOSCALING = "Synced", "Conflict", "Autoscaling"
ONE_WRITER, RESOLVED = "OneWriter", "Resolved"
GRAPH_CHANGED, SEVERAL_WRITERS = "GraphChanged", "SeveralWriters"
#: How long a conflict is shown after it was observed: otherwise users would miss a conflict that is corrected at once.
SHOWN_FOR = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class ConditionState:
    """A condition: its status, a reason for programs, a message for people."""

    status: bool
    reason: str
    message: str
    #: Another program writes the message, often with changes: only a different reason is reported.
    by_other: bool = False


@dataclass(frozen=True, slots=True)
class AdapterObservation:
    """The observations of one reconcile of an adapter. None leaves a part unchanged, or omits it."""

    synced: ConditionState
    replicas: int = 0
    selector: str | None = None
    #: The graph has just got another number.
    scaled: bool = False
    conflict: ConditionState | None = None
    autoscaling: ConditionState | None = None


def adapter_status(adapter: KubeObject, observation: AdapterObservation, now: datetime) -> KubeObject:
    """The whole `status` of an adapter."""
    before = adapter.get("status", {})
    previous, generation = before.get("conditions", []), objects.generation(adapter)
    # A conflict that is observed again is shown for the full time again.
    known = previous if observation.conflict is None else [each for each in previous if each["type"] != CONFLICT]

    def entry(type_: str, verdict: ConditionState) -> Condition:
        return condition(
            known,
            type_,
            status=verdict.status,
            reason=verdict.reason,
            message=verdict.message,
            generation=generation,
            now=now,
        )

    status: KubeObject = {"replicas": observation.replicas}
    selector = observation.selector or before.get("selector")
    if selector:
        status["selector"] = selector
    last = timestamp(now) if observation.scaled else before.get("lastScaleTime")
    if last:
        status["lastScaleTime"] = last
    status["conditions"] = [
        entry(SYNCED, observation.synced),
        entry(CONFLICT, observation.conflict or _conflict(previous, now)),
    ]
    if observation.autoscaling is not None:
        status["conditions"].append(entry(AUTOSCALING, observation.autoscaling))
    return status


def reported_autoscaling(adapter: KubeObject) -> ConditionState | None:
    """The existing condition of an adapter's autoscaler, for an observation without news about it."""
    entry = objects.condition(adapter, AUTOSCALING)
    return ConditionState(entry["status"] == "True", entry["reason"], entry["message"]) if entry is not None else None


def conflict_ends_in(status: KubeObject, now: datetime) -> float | None:
    """Seconds until a conflict is no longer shown; None without one."""
    shown = find(status.get("conditions", ()), CONFLICT)
    if shown is None or shown["status"] != "True":
        return None
    return max(0.0, _left(shown, now).total_seconds()) + 1.0


def _conflict(previous: Sequence[Condition], now: datetime) -> ConditionState:
    """Without a new conflict, a recent one is still shown, and an old one stays as resolved."""
    shown = find(previous, CONFLICT)
    if shown is None:
        return ConditionState(False, ONE_WRITER, "only the adapter sets the replicas")
    if shown["status"] == "True" and _left(shown, now) > timedelta(0):
        return ConditionState(True, shown["reason"], shown["message"])
    if shown["status"] == "True":
        return ConditionState(False, RESOLVED, f"no longer observed; before: {shown['message']}")
    return ConditionState(False, shown["reason"], shown["message"])


def _left(shown: Condition, now: datetime) -> timedelta:
    """How long a conflict is still shown. It also ends if the clock was set back before its start."""
    since = times.moment(shown["lastTransitionTime"]) or times.EARLIEST
    return SHOWN_FOR - abs(now - since)
