"""The policy `adaptive`: sizes pools by what requests will feel, for the time at which new replicas will be there."""

from dynamo_planner.core.adaptive.policy import AdaptivePolicy

__all__ = ["AdaptivePolicy"]
