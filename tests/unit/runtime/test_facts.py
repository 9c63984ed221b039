"""One fact is published as a Kubernetes Event, a CloudEvent, or both."""

from typing import Any, NamedTuple

import pytest
from dynamo_shared.runtime.facts import Announcer, EventReason, Fact
from dynamo_shared.wire.specifications.platform import CommandResult

OBJECT = {"kind": "DynamoModel", "metadata": {"name": "one"}}
DATA = CommandResult(service="scaler", verb="scale")
READY = EventReason("Ready", "It serves.", "Warning", "Serve")


class Call(NamedTuple):
    name: str
    obj: Any
    arguments: dict[str, Any]


class Log:
    """A recorder and a publisher."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def record(self, obj: Any, **arguments: Any) -> None:
        self.calls.append(Call("record", obj, arguments))

    def publish(self, **arguments: Any) -> None:
        self.calls.append(Call("publish", arguments.pop("obj"), arguments))


EVENT = {"type_": "Warning", "reason": "Ready", "action": "Serve", "message": "all serve"}
NEWS = {"kind": "DynamoModel", "event": "ready", "data": DATA, "reason": "1/a", "causation_id": "c"}


def announced(fact: Fact) -> list[Call]:
    log: Any = Log()
    Announcer(log, log).announce(OBJECT, fact)
    calls: list[Call] = log.calls
    return calls


def test_a_fact_with_a_reason_and_an_event_is_published_as_both() -> None:
    fact = READY("all serve", "ready", DATA, identity="1/a", causation_id="c")
    assert announced(fact) == [Call("record", OBJECT, EVENT), Call("publish", OBJECT, NEWS)]


def test_a_fact_without_an_event_is_only_a_kubernetes_event() -> None:
    assert announced(READY("all serve")) == [Call("record", OBJECT, EVENT)]
    assert announced(READY("all serve", None, DATA)) == [Call("record", OBJECT, EVENT)]


def test_a_fact_without_a_reason_is_only_a_cloud_event() -> None:
    fact = Fact(event="ready", data=DATA, identity="1/a", causation_id="c")
    assert announced(fact) == [Call("publish", OBJECT, NEWS)]


def test_an_event_must_have_data() -> None:
    """Without data, subscribers would get no content, and no test would notice."""
    with pytest.raises(ValueError, match="event 'ready' has no data"):
        Fact(event="ready")


def test_an_event_may_have_the_reason_of_a_condition() -> None:
    waits = EventReason("", "It waits.", condition="Ready")
    assert waits.named("Unschedulable")("no node") == Fact("Unschedulable", "Normal", "Reconcile", "no node")
