"""The inputs of SLA planning: traffic from Prometheus, forward passes from the runtime's NATS, workers from STATE.

A missing input is an `InputUnavailable` with a reason and a sentence; it never means zero demand.
"""

from dynamo_planner.inputs.outcome import InputError, InputUnavailable

__all__ = ["InputError", "InputUnavailable"]
