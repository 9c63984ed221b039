"""A planning policy that decides like Dynamo's own planner, including the known quirks of its decisions."""

from dynamo_planner.core.reference.policy import ReferencePolicy
from dynamo_planner.core.reference.reasons import LoadReason, ThroughputReason

__all__ = ["LoadReason", "ReferencePolicy", "ThroughputReason"]
