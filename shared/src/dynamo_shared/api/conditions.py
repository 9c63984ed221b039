"""Conditions that follow the API conventions: one per type, with a transition time that changes only with the status."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.untrusted.words import redacted

#: Kubernetes' limit of `metav1.Condition.message`. Characters.
MESSAGE_LIMIT = 32_768
#: Kubernetes' limit of `metav1.Condition.reason`. Characters.
_REASON_LIMIT = 1024
_NOT_IN_REASONS = re.compile(r"[^A-Za-z0-9_,:]")
_BEFORE_REASON = re.compile(r"^[^A-Za-z]+")

#: The condition that the planner writes to the status of graphs that it plans; the pod-builder writes the rest.
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

    `previous` are the current conditions: the transition time changes only with the status. Characters of `reason` that
    the API server refuses are replaced, because kubelets report such reasons (`OutOfnvidia.com/gpu`).
    """
    value = "Unknown" if status is None else str(status)
    old = find(previous, type_)
    changed_at = old["lastTransitionTime"] if old is not None and old["status"] == value else timestamp(now)
    return {
        "type": type_,
        "status": value,
        "reason": _word(reason),
        "message": redacted(message[:MESSAGE_LIMIT])[:MESSAGE_LIMIT],
        "observedGeneration": generation,
        "lastTransitionTime": changed_at,
    }


def condition_of(
    obj: KubeObject, type_: str, status: bool | None, reason: str, message: str, *, now: datetime
) -> Condition:
    """The condition of `type_` for an object's next status, with its current generation and transition time."""
    previous = (obj.get("status") or {}).get("conditions") or ()
    generation = objects.generation(obj)
    return condition(previous, type_, status=status, reason=reason, message=message, generation=generation, now=now)


def _word(reason: str) -> str:
    """A valid reason: `_` instead of each invalid character, no leading non-letters; `Unknown` if nothing remains."""
    word = _BEFORE_REASON.sub("", _NOT_IN_REASONS.sub("_", reason[:_REASON_LIMIT]))
    return word.rstrip(",:") or "Unknown"


def find(conditions: Sequence[Condition], type_: str) -> Condition | None:
    """The condition of a type; None if absent."""
    return next((entry for entry in conditions if entry["type"] == type_), None)
