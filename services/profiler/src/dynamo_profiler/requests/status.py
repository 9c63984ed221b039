"""Status of a DynamoGraphDeploymentRequest: phases, and conditions with reasons (operator behaviour, section 7.2).
Pure.
"""

from datetime import datetime
from typing import Any, Self

from dynamo_shared.api import objects
from dynamo_shared.api.conditions import condition_of
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.request_parts import in_request_fields
from dynamo_shared.api.v1beta1.request import ProfilingPhase, RequestPhase

VALIDATION, PROFILING, SPEC_GENERATED = "Validation", "Profiling", "SpecGenerated"
DEPLOYMENT_READY, SUCCEEDED = "DeploymentReady", "Succeeded"
#: Condition with information on a result for the user, such as an objective that nothing meets.
OBJECTIVE_MET = "ObjectiveMet"
#: Condition of a failed reconcile; the next successful one removes it.
RECONCILED = "Reconciled"

_IN_ORDER = (VALIDATION, PROFILING, SPEC_GENERATED, OBJECTIVE_MET, DEPLOYMENT_READY, SUCCEEDED)

#: Phase -> status of the Succeeded condition, and its reason.
_SUMS = {
    RequestPhase.PENDING: (False, "Pending"),
    RequestPhase.PROFILING: (False, "Profiling"),
    RequestPhase.READY: (True, "SpecGenerated"),
    RequestPhase.DEPLOYING: (False, "Deploying"),
    RequestPhase.DEPLOYED: (True, "Deployed"),
    RequestPhase.FAILED: (False, "Failed"),
}


class StatusDraft:
    """The next status of a request, built from the current one step by step."""

    def __init__(self, obj: KubeObject, now: datetime) -> None:
        self._obj = obj
        self._now = now
        self.status: KubeObject = dict(obj.get("status") or {})
        self._conditions = {entry["type"]: entry for entry in self.status.pop("conditions", [])}
        #: Whether the status reports a failure of the last reconcile, which this one removes.
        self.recovers = self._conditions.pop(RECONCILED, None) is not None

    @property
    def phase(self) -> RequestPhase:
        """The phase of the request."""
        return RequestPhase(self.status.get("phase") or RequestPhase.PENDING)

    def condition(self, type_: str) -> dict[str, Any] | None:
        """The drafted condition of a type."""
        return self._conditions.get(type_)

    def say(self, type_: str, status: bool | None, reason: str, message: str) -> Self:
        """Set a condition. Its message names fields like the request does."""
        words = in_request_fields(message, self._obj)
        self._conditions[type_] = condition_of(self._obj, type_, status, reason, words, now=self._now)
        return self

    def put(self, **fields: Any) -> Self:
        """Set fields of the status by name; None removes a field."""
        for name, value in fields.items():
            if value is None:
                self.status.pop(name, None)
            else:
                self.status[name] = value
        return self

    def enter(self, phase: RequestPhase, message: str, reason: str = "") -> Self:
        """Enter a phase, and set the Succeeded condition. `reason` replaces the phase's default reason."""
        self.status["phase"] = phase.value
        succeeded, usual = _SUMS[phase]
        return self.say(SUCCEEDED, succeeded, reason or usual, message)

    def observe(self) -> Self:
        """Set the observed generation to the current spec's."""
        return self.put(observedGeneration=objects.generation(self._obj))

    def at(self, phase: ProfilingPhase, message: str) -> Self:
        """Set the current step of profiling."""
        reason = "Completed" if phase is ProfilingPhase.DONE else phase.value
        self.put(profilingPhase=phase.value)
        return self.say(PROFILING, False, reason, message).enter(RequestPhase.PROFILING, message)

    def fail(self, type_: str, reason: str, message: str) -> Self:
        """Fail the request in its current form. `type_`: the condition with the cause; Succeeded has its reason, too."""
        return self.say(type_, False, reason, message).enter(RequestPhase.FAILED, message, reason)

    def fail_profiling(self, message: str, reason: str = "") -> Self:
        """Fail profiling at its current step, which stays in the status; without `reason`, the step is the reason."""
        named = reason or f"{self.status.get('profilingPhase') or ProfilingPhase.INITIALIZING.value}Failed"
        return self.fail(PROFILING, named, message)

    def done(self) -> KubeObject:
        """The finished status."""
        known = [self._conditions[type_] for type_ in _IN_ORDER if type_ in self._conditions]
        others = [entry for type_, entry in self._conditions.items() if type_ not in _IN_ORDER]
        return {**self.status, "conditions": [*known, *others]}
