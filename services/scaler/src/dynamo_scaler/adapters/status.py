"""Status of a scaling adapter: what autoscalers read, and three conditions for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from dynamo_shared.api.conditions import Condition, condition, find, timestamp
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.untrusted import times

SYNCED, CONFLICT, AUTOSCALING = "Synced", "Conflict", "Autoscaling"
ONE_WRITER, RESOLVED = "OneWriter", "Resolved"
GRAPH_CHANGED, SEVERAL_WRITERS = "GraphChanged", "SeveralWriters"
#: How long a conflict is shown after it was found: what is put right at once would otherwise never be seen.
SHOWN_FOR = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a condition stands: its status, a word for programs, a sentence for people."""

    status: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of an adapter at the end of one look. None leaves a part as it was, or out."""

    synced: Verdict
    replicas: int | None = None
    selector: str | None = None
    #: The graph was given another number just now.
    scaled: bool = False
    conflict: Verdict | None = None
    autoscaling: Verdict | None = None


def adapter_status(adapter: KubeObject, seen: Seen, now: datetime) -> KubeObject:
    """The whole `status` of an adapter."""
    before = adapter.get("status", {})
    previous, generation = before.get("conditions", []), adapter["metadata"].get("generation", 1)
    # One that is seen again begins anew: it is shown for so long after it was seen last.
    known = previous if seen.conflict is None else [each for each in previous if each["type"] != CONFLICT]

    def told(type_: str, verdict: Verdict) -> Condition:
        return condition(
            known,
            type_,
            status=verdict.status,
            reason=verdict.reason,
            message=verdict.message,
            generation=generation,
            now=now,
        )

    status: KubeObject = {"replicas": before.get("replicas", 0) if seen.replicas is None else seen.replicas}
    selector = seen.selector or before.get("selector")
    if selector:
        status["selector"] = selector
    last = timestamp(now) if seen.scaled else before.get("lastScaleTime")
    if last:
        status["lastScaleTime"] = last
    status["conditions"] = [told(SYNCED, seen.synced), told(CONFLICT, seen.conflict or _conflict(previous, now))]
    if seen.autoscaling is not None:
        status["conditions"].append(told(AUTOSCALING, seen.autoscaling))
    return status


def conflict_ends_in(status: KubeObject, now: datetime) -> float | None:
    """Seconds until a conflict is no longer shown; None where none is."""
    shown = find(status.get("conditions", ()), CONFLICT)
    if shown is None or shown["status"] != "True":
        return None
    return max(0.0, (_time(shown) + SHOWN_FOR - now).total_seconds()) + 1.0


def _conflict(previous: Sequence[Condition], now: datetime) -> Verdict:
    """Nothing new: one that was found lately is still shown, and one that is over is remembered."""
    shown = find(previous, CONFLICT)
    if shown is None:
        return Verdict(False, ONE_WRITER, "nobody but the adapter sets the replicas")
    if shown["status"] == "True" and now < _time(shown) + SHOWN_FOR:
        return Verdict(True, shown["reason"], shown["message"])
    if shown["status"] == "True":
        return Verdict(False, RESOLVED, f"not seen again; before: {shown['message']}")
    return Verdict(False, shown["reason"], shown["message"])


def _time(entry: Condition) -> datetime:
    return times.moment(entry["lastTransitionTime"]) or times.EARLIEST
