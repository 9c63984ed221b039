"""The bus over NATS JetStream."""

from dynamo_shared.bus.nats.bus import NatsBus
from dynamo_shared.bus.nats.listener import NatsListener
from dynamo_shared.bus.nats.options import NatsOptions

__all__ = ["NatsBus", "NatsListener", "NatsOptions"]
