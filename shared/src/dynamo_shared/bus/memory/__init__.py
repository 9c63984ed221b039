"""The bus in memory: for the tests of this project and of integrators, held to the behaviour of the NATS bus."""

from dynamo_shared.bus.memory.bus import MemoryBus

__all__ = ["MemoryBus"]
