"""The bus in memory: for tests, ours and those of integrators, and held to the behaviour of the NATS bus."""

from __future__ import annotations

from dynamo_shared.bus.memory.bus import MemoryBus

__all__ = ["MemoryBus"]
