"""The policy `adaptive`: sizes pools by the latency of individual requests, for the time when new replicas will be
ready.
"""

from dynamo_planner.core.adaptive.policy import AdaptivePolicy

__all__ = ["AdaptivePolicy"]
