"""NATS access: streams, publishing, consuming, events and commands.

Only this package imports nats. Tests use a bus in memory; the same conformance tests run against both.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynamo_shared.bus.errors import BusError, BusUnavailableError
    from dynamo_shared.bus.events import EventPublisher
    from dynamo_shared.bus.nats import NatsBus, NatsOptions
    from dynamo_shared.bus.protocol import Bus, BusHealth
else:
    from dynamo_shared.lazy import names

    __getattr__ = names(
        __name__,
        errors=("BusError", "BusUnavailableError"),
        events=("EventPublisher",),
        nats=("NatsBus", "NatsOptions"),
        protocol=("Bus", "BusHealth"),
    )

__all__ = ["Bus", "BusError", "BusHealth", "BusUnavailableError", "EventPublisher", "NatsBus", "NatsOptions"]
