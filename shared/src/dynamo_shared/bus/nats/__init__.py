"""The bus over NATS JetStream."""

from __future__ import annotations

from dynamo_shared.bus.nats.bus import NatsBus
from dynamo_shared.bus.nats.listener import LastingSubscription, NatsListener
from dynamo_shared.bus.nats.options import NatsOptions

__all__ = ["LastingSubscription", "NatsBus", "NatsListener", "NatsOptions"]
