"""Talking over NATS: subjects, streams, envelopes, the object cache, events and commands.

Only this package imports nats. `NatsBus` and `MemoryBus` are the same to their users; one set of conformance tests
holds them to that.
"""

from __future__ import annotations

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.bus.cache import ObjectCache
from dynamo_shared.bus.errors import BusError, BusUnavailableError
from dynamo_shared.bus.events import EventPublisher
from dynamo_shared.bus.memory import MemoryBus
from dynamo_shared.bus.nats import NatsBus, NatsOptions
from dynamo_shared.bus.protocol import Ack, Bus, BusHealth
from dynamo_shared.bus.specifications import (
    CheckpointData,
    CommandResult,
    ComponentCounts,
    DeploymentData,
    ResyncData,
    ScaleData,
    ScaleTarget,
    checkpoint_data,
    deployment_data,
)
from dynamo_shared.bus.state_reader import StateReader

__all__ = [
    "Ack",
    "Bus",
    "BusError",
    "BusHealth",
    "BusUnavailableError",
    "CheckpointData",
    "CommandResult",
    "ComponentCounts",
    "DeploymentData",
    "EventPublisher",
    "KubeObject",
    "MemoryBus",
    "NatsBus",
    "NatsOptions",
    "ObjectCache",
    "ResyncData",
    "ScaleData",
    "ScaleTarget",
    "StateReader",
    "checkpoint_data",
    "deployment_data",
]
