"""Conditions as the API conventions want them: one a type, and a transition time that moves only when the status does."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.untrusted.words import redacted

#: Kubernetes' own limit of `metav1.Condition.message`.
MESSAGE_LIMIT = 32_768
#: That of `metav1.Condition.reason`.
_REASON_LIMIT = 1024
_NOT_IN_REASONS = re.compile(r"[^A-Za-z0-9_,:]")
_BEFORE_REASON = re.compile(r"^[^A-Za-z]+")

#: Written by the planner into the status of graphs that it plans; all else in there is the pod-builder's.
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

    `previous` are the conditions in force: the transition time is kept while the status stays the same.
    The API server refuses a status with a reason that is not one word, and kubelets give some: `OutOfnvidia.com/gpu`.
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
    """The condition of `type_` for an object's next status: about its present spec, after the one that it has."""
    previous = (obj.get("status") or {}).get("conditions") or ()
    generation = objects.generation(obj)
    return condition(previous, type_, status=status, reason=reason, message=message, generation=generation, now=now)


def _word(reason: str) -> str:
    """A reason with `_` for each character that no reason may have."""
    word = _BEFORE_REASON.sub("", _NOT_IN_REASONS.sub("_", reason[:_REASON_LIMIT]))
    return word.rstrip(",:") or "Unknown"


def find(conditions: Sequence[Condition], type_: str) -> Condition | None:
    """The condition of a type, where there is one."""
    return next((entry for entry in conditions if entry["type"] == type_), None)
