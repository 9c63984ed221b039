"""What users and programs learn of a model while its status changes."""

from __future__ import annotations

from typing import Any

import pytest
from dynamo_model_discovery.models.status import ENDPOINTS_READY, ModelReadiness
from dynamo_model_discovery.reconcilers.model import ModelReconciler
from dynamo_shared.api.objects import KubeObject

from tests.unit.announced import Announced

MODEL: KubeObject = {
    "kind": "DynamoModel",
    "metadata": {"name": "m", "namespace": "ns", "uid": "u"},
    "spec": {"modelName": "a", "baseModelName": "b", "modelType": "lora"},
}
READY = ModelReadiness(True, "AllEndpointsReady", "all")
NOTHING = ModelReadiness(False, "NoEndpoints", "none")
LOADING = ModelReadiness(False, "NotReady", "1 of 2")
FAILING = ModelReadiness(False, "NotReady", "1 of 2: p", {"p": "HTTP 500"})
FAILING_MORE = ModelReadiness(False, "NotReady", "0 of 2: p, q", {"p": "HTTP 500", "q": "HTTP 500"})
FAILING_OTHERWISE = ModelReadiness(False, "NotReady", "0 of 2: p, q", {"p": "HTTP 500", "q": "no route"})


@pytest.mark.parametrize(
    ("verdicts", "reasons", "events"),
    [
        ([READY, READY], ["Normal EndpointsReady"], ["ready"]),
        ([NOTHING, READY], ["Warning NoEndpointsFound", "Normal EndpointsReady"], ["notready", "ready"]),
        ([LOADING, READY], ["Normal NotReady", "Normal EndpointsReady"], ["notready", "ready"]),
        ([FAILING, FAILING_MORE], ["Warning PartialEndpointFailure", "Warning NotReady"], ["notready"]),
        (
            [LOADING, FAILING, FAILING_OTHERWISE],
            ["Normal NotReady", "Warning PartialEndpointFailure", "Warning PartialEndpointFailure"],
            ["notready"],
        ),
        (
            [FAILING, LOADING, FAILING],
            ["Warning PartialEndpointFailure", "Warning NotReady", "Warning PartialEndpointFailure"],
            ["notready"],
        ),
    ],
    ids=["once", "found", "loaded", "the same reason", "another reason", "the same reason after it was over"],
)
def test_a_model_is_announced(verdicts: list[ModelReadiness], reasons: list[str], events: list[str]) -> None:
    announced, none = Announced(), None
    status: KubeObject = {}
    reconciler = ModelReconciler(none, none, none, none, announced, none, none, none)  # type: ignore[arg-type]
    for verdict in verdicts:
        ready = {"type": ENDPOINTS_READY, "status": str(verdict.ready), "reason": verdict.reason}
        now: dict[str, Any] = {"conditions": [ready]}
        reconciler._announce({**MODEL, "status": status}, now, verdict)
        status = now
    assert [line.rpartition(" Reconcile: ")[0] for line in announced.lines] == reasons
    assert announced.events == events
