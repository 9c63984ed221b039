"""Conditions of an HPA or a ScaledObject reach the status of its adapter."""

import copy
from datetime import timedelta
from typing import Any

import pytest
from dynamo_scaler.routing import SETTLE_PODS, routes
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS, ObjectKey, Resource
from dynamo_shared.runtime.debounce import Debounce
from dynamo_shared.state import ObjectCache

from tests.building.clock import ManualClock
from tests.unit.routed import routed
from tests.unit.scaler.autoscaler_api import HPA, NOW, TRIGGERS, AutoscalerDesk

FAILED = {"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric", "message": "no metrics"}
UNABLE = {"type": "AbleToScale", "status": "False", "reason": "FailedUpdateScale", "message": "a webhook says no"}
#: An HPA that reports 0 replicas.
AT_ZERO = {"type": "ScalingActive", "status": "False", "reason": "ScalingDisabled", "message": "0 replicas"}
ACTIVE = {"type": "ScalingActive", "status": "True", "reason": "ValidMetric", "message": "fine"}
#: A ScaledObject whose triggers fail and whose fallback scales; it is ready all the same.
FALLBACK = {"type": "Fallback", "status": "True", "reason": "FallbackExists", "message": "a trigger is falling back"}
NOT_READY = {"type": "Ready", "status": "False", "reason": "ScaledObjectCheckFailed", "message": "no such trigger"}


async def reported(rules: Any, status: Any) -> tuple[bool, str, str]:
    """The condition of an adapter whose autoscaler has a status."""
    harness = AutoscalerDesk()
    await harness.ask(rules)
    (stored,) = harness.api.objects.values()
    harness.api.put({**stored, "status": status})
    harness.read()
    condition = await harness.condition(rules)
    return condition.status, condition.reason, condition.message


async def test_an_hpa_that_does_not_scale_is_a_problem_of_its_adapter() -> None:
    assert await reported(HPA, {"conditions": [FAILED]}) == (
        False,
        "FailedGetResourceMetric",
        "HorizontalPodAutoscaler g-w does not scale as it should: no metrics "
        "(see its events: kubectl describe horizontalpodautoscalers g-w)",
    )
    status, reason, message = await reported(HPA, {"conditions": [FAILED, UNABLE]})
    assert (status, reason) == (False, "FailedUpdateScale")
    assert "a webhook says no" in message


async def test_a_scaled_object_that_is_not_ready_is_a_problem_of_its_adapter() -> None:
    assert await reported(TRIGGERS, {"conditions": [NOT_READY]}) == (
        False,
        "ScaledObjectCheckFailed",
        "ScaledObject g-w does not scale as it should: no such trigger (see its events: kubectl describe scaledobjects g-w)",
    )


async def test_a_scaled_object_that_falls_back_is_a_problem_of_its_adapter() -> None:
    ready = {**NOT_READY, "status": "True"}
    status, reason, message = await reported(TRIGGERS, {"conditions": [ready, FALLBACK]})
    assert (status, reason) == (False, "FallbackExists")
    assert "a trigger is falling back" in message
    assert (await reported(TRIGGERS, {"conditions": [FALLBACK, NOT_READY]}))[1] == "ScaledObjectCheckFailed"
    assert (await reported(TRIGGERS, {"conditions": [ready, {**FALLBACK, "status": "False"}]}))[0]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [([UNABLE], (False, "FailedUpdateScale")), ([ACTIVE], (True, "ScaledObject")), ([AT_ZERO], (True, "ScaledObject"))],
)
async def test_an_hpa_of_keda_that_does_not_scale_is_a_problem_of_its_adapter(
    conditions: list[Any], expected: tuple[bool, str]
) -> None:
    """Most releases of KEDA do not report this in `Ready`."""
    harness = AutoscalerDesk()
    kedas = await harness.kedas(TRIGGERS)
    harness.api.put({**kedas, "status": {"conditions": conditions}})
    harness.read()
    condition = await harness.condition(TRIGGERS)
    assert (condition.status, condition.reason) == expected
    if not condition.status:
        assert condition.message.startswith("HorizontalPodAutoscaler keda-hpa-g-w does not scale as it should: ")


@pytest.mark.parametrize(
    ("since", "reason", "again"),
    [
        (0.0, "HorizontalPodAutoscaler", 120.0),
        (90.0, "HorizontalPodAutoscaler", 30.0),
        (-600.0, "HorizontalPodAutoscaler", 120.0),  # a clock that is ahead
        (120.0, "FailedGetResourceMetric", None),
    ],
)
async def test_problems_that_may_pass_while_pods_start_are_reported_after_two_minutes(
    since: float, reason: str, again: Any
) -> None:
    harness = AutoscalerDesk()
    await harness.ask(HPA)
    (stored,) = harness.api.objects.values()
    at = (NOW - timedelta(seconds=since)).strftime("%Y-%m-%dT%H:%M:%SZ")
    harness.api.put({**stored, "status": {"conditions": [{**FAILED, "lastTransitionTime": at}]}})
    harness.read()
    state = await harness.ask(HPA)
    assert state.condition is not None
    assert (state.condition.reason, state.again) == (reason, again)


@pytest.mark.parametrize(
    "status",
    [
        {"conditions": [ACTIVE]},
        {"conditions": [AT_ZERO]},
        {"conditions": [{**FAILED, "status": "Unknown"}]},
        {"conditions": [NOT_READY]},  # an HPA has no condition of that type
        # Invalid values.
        {},
        None,
        {"conditions": None},
        {"conditions": ["ScalingActive", {}, {"type": "ScalingActive"}]},
    ],
)
async def test_an_hpa_without_failing_conditions_counts_as_scaling(status: Any) -> None:
    assert await reported(HPA, status) == (
        True,
        "HorizontalPodAutoscaler",
        "HorizontalPodAutoscaler g-w between 1 and 3 replicas",
    )


async def test_messages_of_other_programs_are_repeated_with_a_reason_and_without_secrets() -> None:
    status, reason, message = await reported(HPA, {"conditions": [{"type": "ScalingActive", "status": "False"}]})
    assert (status, reason) == (False, "ScalingActiveIsFalse")
    assert "ScalingActive is False, without a message" in message
    _, _, message = await reported(
        HPA, {"conditions": [{**FAILED, "message": "GET http://u:hunter2@m/ " + "x" * 9000}]}
    )
    assert "hunter2" not in message
    assert len(message) < 500


@pytest.mark.parametrize(("resource", "trouble"), [(HORIZONTAL_POD_AUTOSCALERS, FAILED), (SCALED_OBJECTS, NOT_READY)])
def test_a_problem_that_starts_or_ends_triggers_a_reconcile(resource: Resource, trouble: dict[str, Any]) -> None:
    def autoscaler(*conditions: Any) -> dict[str, Any]:
        metadata = {"name": "g-w", "namespace": "n", "uid": "h", "labels": {labels.GRAPH_DEPLOYMENT_NAME: "g"}}
        return {"kind": resource.kind, "metadata": metadata, "spec": {}, "status": {"conditions": list(conditions)}}

    def due(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[ObjectKey, float]]:
        pace = routes(ObjectCache(), Debounce(ManualClock()))
        return [(task.key, after) for task, after in routed(pace, resource, ObjectKey("n", "g-w"), old, new)]

    graph = [(ObjectKey("n", "g"), SETTLE_PODS)]
    assert due(autoscaler(), autoscaler(trouble)) == graph
    assert due(autoscaler(trouble), autoscaler({**trouble, "reason": "Other"})) == graph
    assert due(autoscaler(trouble), autoscaler({**trouble, "status": "True"})) == graph
    # Words and numbers change all the time.
    again = copy.deepcopy(autoscaler({**trouble, "message": "other words"}))
    again["status"]["currentReplicas"] = 2
    assert due(autoscaler(trouble), again) == []
