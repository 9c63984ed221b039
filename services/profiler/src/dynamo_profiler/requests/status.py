"""Status of a DynamoGraphDeploymentRequest: phases, and conditions that say why (operator behaviour, section 7.2). Pure."""

from datetime import datetime
from typing import Any, Self

from dynamo_shared.api import objects
from dynamo_shared.api.conditions import condition_of
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.request_parts import in_own_words
from dynamo_shared.api.v1beta1.request import ProfilingPhase, RequestPhase

VALIDATION, PROFILING, SPEC_GENERATED = "Validation", "Profiling", "SpecGenerated"
DEPLOYMENT_READY, SUCCEEDED = "DeploymentReady", "Succeeded"
#: Reports what the user has to know of a result, such as an objective that nothing meets.
OBJECTIVE_MET = "ObjectiveMet"
#: Says that a reconcile failed; gone with the next one that does not.
RECONCILED = "Reconciled"

_IN_ORDER = (VALIDATION, PROFILING, SPEC_GENERATED, OBJECTIVE_MET, DEPLOYMENT_READY, SUCCEEDED)

#: What the sum of a phase is: whether the request succeeded, and the reason.
_SUMS = {
    RequestPhase.PENDING: (False, "Pending"),
    RequestPhase.PROFILING: (False, "Profiling"),
    RequestPhase.READY: (True, "SpecGenerated"),
    RequestPhase.DEPLOYING: (False, "Deploying"),
    RequestPhase.DEPLOYED: (True, "Deployed"),
    RequestPhase.FAILED: (False, "Failed"),
}


class StatusDraft:
    """The next status of a request, made from the present one step by step."""

    def __init__(self, obj: KubeObject, now: datetime) -> None:
        self._obj = obj
        self._now = now
        self.status: KubeObject = dict(obj.get("status") or {})
        self._conditions = {entry["type"]: entry for entry in self.status.pop("conditions", [])}
        #: Whether the last reconcile failed, and the status says so: this one takes that back.
        self.recovers = self._conditions.pop(RECONCILED, None) is not None

    @property
    def phase(self) -> RequestPhase:
        """Where the request is."""
        return RequestPhase(self.status.get("phase") or RequestPhase.PENDING)

    def condition(self, type_: str) -> dict[str, Any] | None:
        """The condition of a type, as it is drafted."""
        return self._conditions.get(type_)

    def say(self, type_: str, status: bool | None, reason: str, message: str) -> Self:
        """Sets a condition; its message names fields as the request does."""
        words = in_own_words(message, self._obj)
        self._conditions[type_] = condition_of(self._obj, type_, status, reason, words, now=self._now)
        return self

    def put(self, **fields: Any) -> Self:
        """Sets fields of the status, by their names there; None takes one out."""
        for name, value in fields.items():
            if value is None:
                self.status.pop(name, None)
            else:
                self.status[name] = value
        return self

    def enter(self, phase: RequestPhase, message: str, reason: str = "") -> Self:
        """Enters a phase, and sums up; `reason` where the phase's own word does not do."""
        self.status["phase"] = phase.value
        succeeded, usual = _SUMS[phase]
        return self.say(SUCCEEDED, succeeded, reason or usual, message)

    def observe(self) -> Self:
        """The status is about the spec as it is now."""
        return self.put(observedGeneration=objects.generation(self._obj))

    def at(self, phase: ProfilingPhase, message: str) -> Self:
        """Profiling is at a step."""
        reason = "Completed" if phase is ProfilingPhase.DONE else phase.value
        self.put(profilingPhase=phase.value)
        return self.say(PROFILING, False, reason, message).enter(RequestPhase.PROFILING, message)

    def fail(self, type_: str, reason: str, message: str) -> Self:
        """Nothing will come of the request as it is; `type_` is the condition that says why."""
        return self.say(type_, False, reason, message).enter(RequestPhase.FAILED, message)

    def fail_profiling(self, message: str, reason: str = "") -> Self:
        """Profiling failed at the step that it was at, which stays in the status: both conditions name it, or `reason`."""
        named = reason or f"{self.status.get('profilingPhase') or ProfilingPhase.INITIALIZING.value}Failed"
        return self.say(PROFILING, False, named, message).enter(RequestPhase.FAILED, message, named)

    def done(self) -> KubeObject:
        """The status."""
        known = [self._conditions[type_] for type_ in _IN_ORDER if type_ in self._conditions]
        others = [entry for type_, entry in self._conditions.items() if type_ not in _IN_ORDER]
        return {**self.status, "conditions": [*known, *others]}
