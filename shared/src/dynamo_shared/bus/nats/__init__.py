"""The bus over NATS JetStream."""

from __future__ import annotations

from dynamo_shared.bus.nats.bus import NatsBus
from dynamo_shared.bus.nats.listening import Listening, NatsListener
from dynamo_shared.bus.nats.options import NatsOptions

__all__ = ["Listening", "NatsBus", "NatsListener", "NatsOptions"]
