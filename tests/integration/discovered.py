"""Helpers for tests of worker discovery: received events, STATE for a new reader, processes of the real runtime."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import nats
from dynamo_devcluster.process import ManagedProcess
from dynamo_devcluster.servers import NatsServer
from dynamo_shared.bus import NatsBus, NatsOptions
from dynamo_shared.state import ObjectCache, StateReader
from dynamo_shared.wire.discovered import MODELS, WORKERS, ServedModelData, WorkerData, model_of, worker_of

from tests.building.tasks import in_background
from tests.dynamo_runtime.processes import Frontend, Runtime

SCHEMAS = Path(__file__).parents[2] / "proto" / "schemas"


@dataclass
class Heard:
    """Events as a plain client receives them."""

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def take(self, message: Any) -> None:
        event = json.loads(message.data)
        specific = SCHEMAS / f"{event['type'].removeprefix('com.nvidia.dynamo.')}.json"
        jsonschema.validate(event["data"], json.loads(specific.read_text()))
        self.events.append((event["type"].removeprefix("com.nvidia.dynamo."), event["data"]))

    def of(self, type_: str) -> list[dict[str, Any]]:
        return [data for each, data in self.events if each == f"{type_}.v1"]

    @property
    def workers(self) -> dict[str, dict[str, Any]]:
        """Workers by role, from events alone. A card may be registered some time after its endpoint."""
        there: dict[str, dict[str, Any]] = {}
        for type_, data in self.events:
            if type_ == "worker.left.v1":
                del there[data["name"]]
            elif type_.startswith("worker."):
                there[data["name"]] = data
        return {data["role"]: data for data in there.values()}

    @property
    def joins(self) -> list[str]:
        """Events except those about changed workers: a further endpoint may arrive at any time."""
        return [type_ for type_, _ in self.events if type_ != "worker.changed.v1"]


@asynccontextmanager
async def listening(server: NatsServer) -> AsyncIterator[Heard]:
    connection, heard = await nats.connect(server.url), Heard()

    async def take(message: Any) -> None:
        heard.take(message)

    for kind in ("worker", "model"):
        await connection.subscribe(f"dynamo.evt.v1.local.*.{kind}.>", cb=take)
    await connection.flush()
    try:
        yield heard
    finally:
        await connection.close()


@dataclass
class Views:
    """STATE as a late reader gets it."""

    cache: ObjectCache

    @property
    def workers(self) -> dict[str, WorkerData]:
        return {worker.role: worker for worker in map(worker_of, self.cache.list(WORKERS))}

    @property
    def models(self) -> list[ServedModelData]:
        return [model_of(obj) for obj in self.cache.list(MODELS)]


@asynccontextmanager
async def viewing(server: NatsServer) -> AsyncIterator[Views]:
    cache = ObjectCache()
    bus = await NatsBus.connect(NatsOptions(servers=(server.url,), name="test"))
    reader = StateReader(bus, "local", [WORKERS, MODELS], cache)
    try:
        async with in_background(reader.run()):
            await asyncio.wait_for(reader.synced(), 60)
            yield Views(cache)
    finally:
        await bus.close()


@dataclass
class Deployment:
    """The processes of one graph, all stopped at the end."""

    runtime: Runtime
    started: list[ManagedProcess] = field(default_factory=list)

    async def frontend(self) -> Frontend:
        frontend = self.runtime.frontend()
        await self._start(frontend.process)
        return frontend

    async def mocker(self, mode: str, **options: Any) -> ManagedProcess:
        process = self.runtime.mocker(f"{mode}-{len(self.started)}", mode, **options)
        await self._start(process)
        return process

    async def _start(self, process: ManagedProcess) -> None:
        self.started.append(process)
        await process.start()

    async def stop(self) -> None:
        for process in self.started:
            await process.stop()


@asynccontextmanager
async def deployment(runtime: Runtime) -> AsyncIterator[Deployment]:
    made = Deployment(runtime)
    try:
        yield made
    finally:
        await made.stop()
