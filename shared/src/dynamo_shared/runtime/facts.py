"""Facts: what happened to an object, for users (a Kubernetes Event) and for programs (a CloudEvent).

A service declares its reasons, and the functions that return facts, in its `events.py`. docs/reference/reasons.md is
generated from these declarations. Only the announcer writes facts.
"""

from dataclasses import dataclass, replace
from typing import Self

import msgspec

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.bus import EventPublisher
from dynamo_shared.kube.event_series import EventType
from dynamo_shared.kube.events import EventRecorder


@dataclass(frozen=True, slots=True)
class Fact:
    """An occurrence at an object. Without `reason` there is no Kubernetes Event, without `event` no CloudEvent."""

    reason: str = ""
    type: EventType = "Normal"
    action: str = ""
    message: str = ""
    event: str | None = None
    """an event of the object's kind in `wire.specifications`"""
    data: msgspec.Struct | None = None
    identity: str = ""
    """distinguishes the CloudEvent from the last one of its type, in addition to its specification"""
    causation_id: str = ""

    def __post_init__(self) -> None:
        """Refuse an event without data: it would silently reach no program."""
        if self.event is not None and self.data is None:
            raise ValueError(f"event {self.event!r} has no data")


NOTHING = Fact()
"""Nothing to report."""


@dataclass(frozen=True, slots=True)
class EventReason:
    """A reason of Kubernetes Events. A call with a message returns a fact.

    `name` is CamelCase. It is empty if the Event repeats the reason of `condition`: `named` sets it.
    """

    name: str
    when: str
    type: EventType = "Normal"
    action: str = "Reconcile"
    condition: str = ""

    def named(self, name: str) -> Self:
        """The same with the condition's reason."""
        return replace(self, name=name)

    def __call__(
        self,
        message: str,
        event: str | None = None,
        data: msgspec.Struct | None = None,
        identity: str = "",
        causation_id: str = "",
    ) -> Fact:
        """A fact; the arguments are its fields."""
        return Fact(self.name, self.type, self.action, message, event, data, identity, causation_id)


def record(recorder: EventRecorder, obj: KubeObject, fact: Fact) -> None:
    """Write only the Kubernetes Event of a fact, for a service without CloudEvents about `obj`."""
    if fact.reason:
        recorder.record(obj, type_=fact.type, reason=fact.reason, message=fact.message, action=fact.action)


class Announcer:
    """Writes facts without waiting: Events and CloudEvents are queued, and are sent in the order of the calls."""

    def __init__(self, recorder: EventRecorder, publisher: EventPublisher) -> None:
        self._recorder = recorder
        self._publisher = publisher

    def announce(self, obj: KubeObject, fact: Fact) -> None:
        """Report a fact about `obj`, an object as read from the API server, to users and programs.

        KeyError if its kind has no such event, msgspec.ValidationError for data that does not fit.
        """
        record(self._recorder, obj, fact)
        if fact.event is not None and fact.data is not None:
            self._publisher.publish(
                kind=obj["kind"],
                obj=obj,
                event=fact.event,
                data=fact.data,
                reason=fact.identity,
                causation_id=fact.causation_id,
            )
