"""Reasons of the Kubernetes Events that the planner reports."""

from dynamo_shared.runtime.facts import EventReason

PLANNED = EventReason("Planned", "The planner requests a change of a graph's replicas.", action="Plan")
PROMISE_AT_RISK = EventReason(
    "PromiseAtRisk", "The limits of planning are too low for the promised share of requests.", "Warning", "Plan"
)
INPUT_MISSING = EventReason(
    "PlanningInputMissing", "Planning lacks an input, and keeps the current replicas.", "Warning", "Plan"
)
SCALER_REFUSED = EventReason("PlanningScalerRefused", "The scaler refused a plan.", "Warning", "Plan")
SCALER_UNANSWERED = EventReason("PlanningScalerUnanswered", "The scaler has not answered a plan.", "Warning", "Plan")
NOT_PLANNABLE = EventReason("", "A graph cannot be planned.", "Warning", "Plan", "Planning")
CONFIG_REMARKS = EventReason(
    "PlannerConfigRemarks",
    "A part of a PlannerConfig has no effect, or probably not the intended effect.",
    "Warning",
    "Plan",
)
