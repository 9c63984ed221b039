"""The ticks that are announced to users, and their reasons."""

from datetime import UTC, datetime

import pytest
from dynamo_planner.planning.backoff import Acted
from dynamo_planner.planning.reporter import PlanReporter
from dynamo_planner.planning.runner import TickResult
from dynamo_shared.api.objects import KubeObject

from tests.unit.announced import Announced

from .test_runner import at_risk, collected, effects, more, plan

GRAPH: KubeObject = {"kind": "DynamoGraphDeployment", "metadata": {"name": "g", "namespace": "ns", "uid": "u"}}
HOLDS = TickResult(collected(), effects(), None)
ASKS = TickResult(collected(), effects(more(prefill=2)), Acted("i", "", done=True))
REFUSED = TickResult(collected(), effects(more(prefill=2)), Acted("i", "NotFound", done=False))
UNANSWERED = TickResult(collected(), effects(more(prefill=2)), Acted("i", "not yet", done=False, answered=False))
BLIND = TickResult(collected(traffic="no Prometheus"), effects(), None)

RAISED = TickResult(collected(traffic="no Prometheus"), effects(more(prefill=2)), Acted("i", "", done=True))


def refused(answer: str, *, repeated: bool = False) -> TickResult:
    return REFUSED._replace(acted=Acted("i", answer, done=False, reason="BudgetCeiling", repeated=repeated))


AT_RISK = TickResult(collected(), at_risk(), None)


@pytest.mark.parametrize(
    ("ticks", "reasons", "events"),
    [
        ([HOLDS, HOLDS], [], ["plan-held"]),
        ([ASKS, ASKS], ["Normal Planned Plan"] * 2, ["planned"] * 2),
        ([REFUSED, REFUSED], ["Warning PlanningScalerRefused Plan"], ["plan-held"] * 2),
        (
            [refused("40 GPUs"), refused("40 GPUs", repeated=True), refused("41 GPUs"), refused("a floor"), ASKS],
            [*["Warning PlanningScalerRefused Plan"] * 2, "Normal Planned Plan"],
            [*["plan-held"] * 3, "planned"],
        ),
        ([UNANSWERED, UNANSWERED], ["Warning PlanningScalerUnanswered Plan"], ["plan-held"] * 2),
        ([BLIND, BLIND, HOLDS, BLIND], ["Warning PlanningInputMissing Plan"] * 2, ["plan-held"] * 3),
        ([AT_RISK, AT_RISK], ["Warning PromiseAtRisk Plan"], ["plan-held"]),
        (
            [RAISED, RAISED],
            ["Warning PlanningInputMissing Plan", "Normal Planned Plan"],
            ["planned"] * 2,
        ),
    ],
    ids=[
        "holds",
        "asks",
        "is refused",
        "is refused for something else",
        "is not answered",
        "lacks inputs",
        "cannot keep its promise",
        "lacks inputs and raises a pool to its minimum",
    ],
)
def test_ticks_are_announced(ticks: list[TickResult], reasons: list[str], events: list[str]) -> None:
    announced = Announced()
    reporter = PlanReporter(announced)
    for ticked in ticks:
        reporter.tick(GRAPH, plan(), ticked, datetime(2026, 1, 1, tzinfo=UTC))
    assert [line.partition(":")[0] for line in announced.lines] == reasons
    assert announced.events == events
    assert {fact.causation_id for fact in announced.facts} == {f"{plan().uid}.2026-01-01T00:00:00+00:00"}


def test_advice_is_announced_when_it_changes() -> None:
    announced = Announced()
    reporter = PlanReporter(announced)
    two, three = (TickResult(collected(), effects(more(prefill=count)), None) for count in (2, 3))
    for ticked in (two, two, three, HOLDS, three):
        reporter.tick(GRAPH, plan(advisory=True), ticked, datetime(2026, 1, 1, tzinfo=UTC))
    assert announced.events == ["planned", "planned", "plan-held", "planned"]
    assert len(announced.lines) == 3


def test_a_graph_that_cannot_be_planned_is_announced_once_for_each_reason() -> None:
    announced = Announced()
    reporter = PlanReporter(announced)
    for message in ("no profile", "no profile", "no such profile"):
        reporter.refused(GRAPH, "InvalidPlannerConfig", message)
    assert announced.lines == [
        "Warning InvalidPlannerConfig Plan: no profile",
        "Warning InvalidPlannerConfig Plan: no such profile",
    ]
