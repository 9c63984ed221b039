"""What SLA planning reads: traffic from Prometheus, forward passes from the runtime's NATS, workers from STATE.

An input that is not there is `InputUnavailable`, with a name and a sentence; it is never zero demand.
"""

from dynamo_planner.inputs.outcome import InputError, InputUnavailable

__all__ = ["InputError", "InputUnavailable"]
