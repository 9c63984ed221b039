"""The bus in memory; the contract tests hold it to the behaviour of the NATS bus."""

from tests.building.memory_bus.bus import MemoryBus

__all__ = ["MemoryBus"]
