"""Conditions that follow the API conventions: one per type, with a transition time that changes only with the status."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.untrusted.words import redacted

#: Kubernetes' own limit of `metav1.Condition.message`.
MESSAGE_LIMIT = 32_768
#: Kubernetes' limit of `metav1.Condition.reason`.
_REASON_LIMIT = 1024
_NOT_IN_REASONS = re.compile(r"[^A-Za-z0-9_,:]")
_BEFORE_REASON = re.compile(r"^[^A-Za-z]+")

#: The planner writes it into the status of graphs that it plans; the pod-builder writes the rest of that status.
PLANNING = "Planning"

Condition = dict[str, Any]


def timestamp(now: datetime) -> str:
    """A time as Kubernetes writes it: RFC 3339, UTC, whole seconds."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(
    previous: Sequence[Condition],
    type_: str,
    *,
    status: bool | None,
    reason: str,
    message: str,
    generation: int,
    now: datetime,
) -> Condition:
    """The condition of `type_`; a `status` of None is `Unknown`.

    `previous` are the current conditions: the transition time is kept while the status stays the same. The API server
    refuses a reason that is not one word, and kubelets report such reasons: `OutOfnvidia.com/gpu`.
    """
    value = "Unknown" if status is None else str(status)
    old = find(previous, type_)
    kept = old["lastTransitionTime"] if old is not None and old["status"] == value else timestamp(now)
    return {
        "type": type_,
        "status": value,
        "reason": _word(reason),
        "message": redacted(message[:MESSAGE_LIMIT])[:MESSAGE_LIMIT],
        "observedGeneration": generation,
        "lastTransitionTime": kept,
    }


def condition_of(
    obj: KubeObject, type_: str, status: bool | None, reason: str, message: str, *, now: datetime
) -> Condition:
    """The condition of `type_` for an object's next status: about its current spec, based on its current condition."""
    previous = (obj.get("status") or {}).get("conditions") or ()
    generation = objects.generation(obj)
    return condition(previous, type_, status=status, reason=reason, message=message, generation=generation, now=now)


def _word(reason: str) -> str:
    """A reason with `_` instead of each character that reasons cannot have."""
    word = _BEFORE_REASON.sub("", _NOT_IN_REASONS.sub("_", reason[:_REASON_LIMIT]))
    return word.rstrip(",:") or "Unknown"


def find(conditions: Sequence[Condition], type_: str) -> Condition | None:
    """The condition of a type; None if absent."""
    return next((entry for entry in conditions if entry["type"] == type_), None)
