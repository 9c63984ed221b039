"""The health of an autoscaler from its own conditions, which its adapter repeats. Pure."""

from datetime import datetime
from typing import Any

from dynamo_shared.api import resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS
from dynamo_shared.api.untrusted.times import moment
from dynamo_shared.api.untrusted.words import quoted

from dynamo_scaler.adapters.status import ConditionState

#: By kind, the conditions of an autoscaler that does not scale; if several apply, the first is repeated.
_TROUBLES = {
    HORIZONTAL_POD_AUTOSCALERS.kind: (("AbleToScale", "False"), ("ScalingActive", "False")),
    SCALED_OBJECTS.kind: (("Ready", "False"), ("Fallback", "True")),
}
#: An HPA ignores a component at 0 replicas; this is documented behaviour.
_HEALTHY_REASONS = frozenset({"ScalingDisabled"})

#: Starting pods have no metrics, and an autoscaler reports that: trouble that ends within this time is not reported.
#: Seconds.
DEBOUNCE = 120.0


def trouble(autoscaler: KubeObject) -> ConditionState | None:
    """Why an autoscaler does not scale, from its own conditions; None if they show no trouble."""
    condition = _failing_condition(autoscaler)
    if condition is None:
        return None
    kind, name, type_ = autoscaler["kind"], autoscaler["metadata"]["name"], condition["type"]
    message = quoted(str(condition.get("message") or f"{type_} is {condition['status']}, without a message"))
    see = f"see its events: kubectl describe {resources.of(autoscaler).plural} {name}"
    return ConditionState(
        False, _reason(condition), f"{kind} {name} does not scale as it should: {message} ({see})", by_other=True
    )


def counts_in(autoscaler: KubeObject, now: datetime) -> float:
    """Seconds until the trouble of an autoscaler counts; 0 if it counts already, or has no time."""
    since = moment((_failing_condition(autoscaler) or {}).get("lastTransitionTime"))
    return min(max(0.0, DEBOUNCE - (now - since).total_seconds()), DEBOUNCE) if since is not None else 0.0


def trouble_reason(autoscaler: KubeObject | None) -> str:
    """The reason of an autoscaler's trouble; empty without trouble. The message is not used, because it changes all the
    time.
    """
    condition = _failing_condition(autoscaler) if autoscaler is not None else None
    return _reason(condition) if condition is not None else ""


def _reason(condition: KubeObject) -> str:
    return str(condition.get("reason") or f"{condition['type']}Is{condition['status']}")


def _failing_condition(autoscaler: KubeObject) -> KubeObject | None:
    """The condition that reports that an autoscaler does not scale."""
    conditions: Any = (autoscaler.get("status") or {}).get("conditions") or ()
    counted = [each for each in conditions if isinstance(each, dict) and each.get("reason") not in _HEALTHY_REASONS]
    troubles = _TROUBLES.get(autoscaler.get("kind", ""), ())
    condition = (each for trouble in troubles for each in counted if (each.get("type"), each.get("status")) == trouble)
    return next(condition, None)
