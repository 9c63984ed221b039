"""Talking over NATS: streams, publishing, consuming, events and commands.

Only this package imports nats. `NatsBus` and `MemoryBus` are the same to their users; one set of conformance tests
holds them to that.
"""

from dynamo_shared.bus.errors import BusError, BusUnavailableError
from dynamo_shared.bus.events import EventPublisher
from dynamo_shared.bus.memory import MemoryBus
from dynamo_shared.bus.nats import NatsBus, NatsOptions
from dynamo_shared.bus.protocol import Bus, BusHealth

__all__ = [
    "Bus",
    "BusError",
    "BusHealth",
    "BusUnavailableError",
    "EventPublisher",
    "MemoryBus",
    "NatsBus",
    "NatsOptions",
]
