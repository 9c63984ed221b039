"""Talking over NATS: streams, publishing, consuming, events and commands.

Only this package imports nats. Tests have a bus in memory; one set of conformance tests holds both to the same.
"""

from dynamo_shared.bus.errors import BusError, BusUnavailableError
from dynamo_shared.bus.events import EventPublisher
from dynamo_shared.bus.nats import NatsBus, NatsOptions
from dynamo_shared.bus.protocol import Bus, BusHealth

__all__ = [
    "Bus",
    "BusError",
    "BusHealth",
    "BusUnavailableError",
    "EventPublisher",
    "NatsBus",
    "NatsOptions",
]
