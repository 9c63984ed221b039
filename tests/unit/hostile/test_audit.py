"""What chaos reads from the audit log: who wrote at whose time."""

import json

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.leases.rendezvous import partition_of

from tests.chaos.audit import Held, Write, late_writes, two_writers, writes

KEY = ObjectKey("chaos", "graph-1")
CLAIM = ("pod-builder", partition_of(KEY))


def write(replica: str, began: float, subresource: str = "status") -> Write:
    return Write("pod-builder", replica, "dynamographdeployments", subresource, KEY, began, began + 0.01)


def line(code: int = 200, verb: str = "patch", user: str = "dynamo:pod-builder:2") -> str:
    return json.dumps(
        {
            "stage": "ResponseComplete",
            "verb": verb,
            "user": {"username": user},
            "objectRef": {
                "resource": "dynamographdeployments",
                "namespace": "chaos",
                "name": "graph-1",
                "subresource": "status",
            },
            "responseStatus": {"code": code},
            "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
            "stageTimestamp": "2026-01-01T00:00:01.000000Z",
        }
    )


def test_only_writes_of_the_services_count() -> None:
    log = [line(), line(code=409), line(verb="get"), line(user="system:admin"), '{"half']
    result = writes(log)
    assert [(each.service, each.replica, each.key) for each in result] == [("pod-builder", "2", KEY)]
    assert result[0].ended - result[0].began == 1.0


def test_alternating_writes_are_reported_and_a_handover_is_not() -> None:
    assert not two_writers([write("1", 0.0), write("2", 0.5), write("2", 0.6)])
    assert not two_writers([write("1", 0.0), write("2", 0.1, ""), write("1", 0.2)])
    assert not two_writers([write("1", 0.0), write("2", 5.0), write("1", 10.0)])
    assert len(two_writers([write("1", 0.0), write("2", 0.1), write("1", 0.2)])) == 1


def test_a_write_after_the_claim_was_lost_is_late() -> None:
    claims = {CLAIM: [Held("1", 0.0, 10.0), Held("2", 10.5, 30.0)]}
    known = [Held("", 0.0, 30.0)]
    assert not late_writes([write("1", 5.0), write("2", 15.0), write("1", 10.3)], claims, known)
    assert len(late_writes([write("1", 12.0)], claims, known)) == 1
    assert len(late_writes([write("2", 5.0)], claims, known)) == 1


def test_nothing_is_reported_without_claims() -> None:
    assert not late_writes([write("1", 12.0)], {}, [Held("", 0.0, 10.0), Held("", 20.0, 30.0)])
