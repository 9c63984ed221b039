"""Reasons of the Kubernetes Events that the planner reports."""

from dynamo_shared.runtime.facts import EventReason

PLANNED = EventReason("Planned", "The planner asks for other replicas of a graph.", action="Plan")
PROMISE_AT_RISK = EventReason(
    "PromiseAtRisk", "What planning may use does not keep the promised share of requests.", "Warning", "Plan"
)
INPUT_MISSING = EventReason("PlanningInputMissing", "Replicas are held: planning lacks an input.", "Warning", "Plan")
SCALER_REFUSED = EventReason("PlanningScalerRefused", "The scaler refused what planning asked for.", "Warning", "Plan")
SCALER_UNANSWERED = EventReason(
    "PlanningScalerUnanswered", "The scaler has not answered what planning asked for.", "Warning", "Plan"
)
NOT_PLANNABLE = EventReason("", "A graph cannot be planned.", "Warning", "Plan", "Planning")
CONFIG_REMARKS = EventReason(
    "PlannerConfigRemarks",
    "A part of a PlannerConfig has no effect, or likely another one than is meant.",
    "Warning",
    "Plan",
)
