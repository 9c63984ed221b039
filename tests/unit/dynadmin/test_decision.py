"""Rows of decisions."""

import json
from typing import Any

import msgspec
import pytest
from dynamo_dynadmin.api.decision import row


def event(data: dict[str, Any], **fields: Any) -> bytes:
    return json.dumps({"id": "1", "time": "2026-01-02T03:04:05Z", "k8suid": "u", "data": data, **fields}).encode()


def test_a_plan_shows_observed_expected_and_desired() -> None:
    data = {
        "policy": "adaptive",
        "reason": "scale_up",
        "message": "more",
        "replicas": {"decode": 3},
        "current": {"decode": 2},
        "inputs": {"requestsPerSecond": 3.5},
        "predictions": {"attainment_aim": 0.96},
        "alternatives": [{"replicas": {"decode": 2}, "figures": {}, "reason": "too few"}],
        "command": "c1",
    }
    result = row("planned", event(data), "u")
    assert result is not None
    assert {name: result[name] for name in data} == data
    assert (result["event"], result["advisory"], result["budgets"]) == ("planned", False, [])


def test_what_the_scaler_did_is_by_component_with_what_capped_it() -> None:
    components = [{"component": "Decode", "current": 2, "requested": 9, "allowed": 4}]
    budgets = [{"name": "cluster", "maxGpus": 8, "before": 6, "after": 8}]
    data = {"reason": "Capped", "components": components, "budgets": budgets}
    result = row("scale-applied", event(data, causationid="c1"), "u")
    assert result is not None
    assert (result["replicas"], result["current"], result["command"]) == ({"Decode": 4}, {"Decode": 2}, "c1")
    assert result["budgets"][0]["maxGpus"] == 8


def test_an_earlier_graph_of_the_name_is_left_out() -> None:
    assert row("planned", event({}), "another") is None


@pytest.mark.parametrize("payload", [b"", b"[]", b'{"id": 1}'])
def test_what_is_not_an_event_is_refused(payload: bytes) -> None:
    with pytest.raises(msgspec.ValidationError if payload else msgspec.DecodeError):
        row("planned", payload, "u")
