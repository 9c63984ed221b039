"""Metrics that more than one service has."""

from __future__ import annotations

from typing import get_args

from dynamo_shared.kube.event_series import EventOutcome
from dynamo_shared.runtime.metrics import Metrics


def test_what_became_of_events_shows_from_the_start() -> None:
    metrics = Metrics()
    count = metrics.events("dynamo-scaler")
    count("suppressed")
    count("suppressed")
    counted = {
        outcome: metrics.registry.get_sample_value(
            "dynamo_platform_kube_events_total", {"reporter": "dynamo-scaler", "outcome": outcome}
        )
        for outcome in get_args(EventOutcome)
    }
    assert counted == {"written": 0, "counted": 0, "dropped": 0, "suppressed": 2}
