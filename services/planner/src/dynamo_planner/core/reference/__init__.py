"""A mode of planning that decides as Dynamo's own planner does, known quirks of its decisions included."""

from dynamo_planner.core.reference.policy import ReferencePolicy
from dynamo_planner.core.reference.reasons import LoadReason, ThroughputReason

__all__ = ["LoadReason", "ReferencePolicy", "ThroughputReason"]
