"""In-memory workers that load adapters like Dynamo's workers do behind their HTTP API."""

import asyncio
from dataclasses import dataclass, field

from dynamo_model_discovery.lora.adapter import Adapter
from dynamo_model_discovery.lora.api import Listing, WorkerApi
from dynamo_model_discovery.lora.responses import LoraError


@dataclass
class MemoryWorkers(WorkerApi):
    """By URL: the adapters that each worker has loaded (source by name), its behaviour, and the calls it received."""

    loras: dict[str, dict[str, str]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    hanging: set[str] = field(default_factory=set)
    without_lora: set[str] = field(default_factory=set)
    calls: list[tuple[str, str]] = field(default_factory=list)
    said: str = "HTTP 500: no"
    """by those that are broken"""

    async def listing(self, url: str) -> Listing:
        await self._call("GET", url)
        return Listing(frozenset(self.loras.get(url, ())), "/v1/loras")

    async def publishes(self, url: str, name: str) -> bool | None:
        return True

    async def load(self, url: str, path: str | None, adapter: Adapter) -> None:
        await self._call("POST", url)
        # An adapter that is already loaded stays unchanged, whatever its source.
        self.loras.setdefault(url, {}).setdefault(adapter.name, adapter.uri)

    async def unload(self, url: str, path: str | None, name: str) -> bool:
        await self._call("DELETE", url)
        return self.loras.get(url, {}).pop(name, None) is not None

    async def _call(self, method: str, url: str) -> None:
        self.calls.append((method, url))
        if url in self.hanging:
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        if url in self.broken:
            raise LoraError(self.said)
        if url in self.without_lora:
            raise LoraError("none of /v1/loras, /loras, /v1/models", outcome="absent")

    def count(self, method: str) -> int:
        return sum(each == method for each, _ in self.calls)
