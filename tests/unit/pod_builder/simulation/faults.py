"""The network between pod-builder and API server: calls are interleaved, fail, lose their answers or arrive late."""

import asyncio
from collections.abc import Coroutine, Sequence
from random import Random
from typing import Any

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.kube.errors import Conflict, Forbidden, KubeError, TooManyRequests, Unavailable, WebhookUnavailable

from tests.building.objects import copied

from .world import World

#: The share of calls that fail without effect; the same share loses its answer.
RATES = (0.02, 0.05, 0.15)
#: The share of read calls that may fail.
READS = 0.3
#: The share of writes that reach the API server after their process has ended.
LATE = 0.6
REFUSED = (
    Unavailable(500, "InternalError", "no leader"),
    Unavailable(0, "", "reset"),
    TooManyRequests(429, "TooManyRequests", "slow"),
    WebhookUnavailable(500, "InternalError", "failed calling webhook x"),
    Forbidden(403, "Forbidden", "exceeded quota"),
)
#: A delete has no resourceVersion that could be outdated.
OUTDATED = Conflict(409, "Conflict", "modified")


class Network:
    """Calls in progress: the story decides which one continues. `over` ends all faults."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._rate = chance.choice(RATES)
        self._waiting: list[asyncio.Future[None]] = []
        self._late: list[Coroutine[Any, Any, Any]] = []
        self.over = False

    @property
    def busy(self) -> bool:
        """Whether a call waits to continue."""
        self._waiting = [each for each in self._waiting if not each.done()]
        return bool(self._waiting)

    @property
    def has_late(self) -> bool:
        """Whether a write of an ended process has not arrived yet."""
        return bool(self._late)

    def go_on(self) -> None:
        """Let one waiting call continue."""
        self._waiting.pop(self._chance.randrange(len(self._waiting))).set_result(None)

    async def arrive(self) -> None:
        """Deliver the oldest write of an ended process to the API server."""
        try:
            await self._late.pop(0)
        except KubeError:
            return

    def close(self) -> None:
        """Drop late writes."""
        for each in self._late:
            each.close()
        self._late.clear()

    async def carry(
        self, call: Coroutine[Any, Any, Any], *, refused: Sequence[KubeError] = (), reads: bool = False
    ) -> Any:
        """The answer of `call`. Raises an error of `refused` instead, or Unavailable if the answer is lost."""
        try:
            await self._turn()
        except asyncio.CancelledError:
            if not reads and self._chance.random() < LATE:
                self._late.append(call)
            else:
                call.close()
            raise
        drawn = 1.0 if self.over or (reads and self._chance.random() >= READS) else self._chance.random()
        if drawn < self._rate:
            call.close()
            raise self._chance.choice(refused)
        answer = await call
        await self._turn()
        if drawn < 2 * self._rate:
            raise Unavailable(0, "", "the answer was lost")
        return copied(answer)

    async def _turn(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn


class Client:
    """The pod-builder's client: the methods of `KubeClient` that its reconcilers call."""

    def __init__(self, world: World, network: Network) -> None:
        self.field_manager = world.field_manager
        self._world = world
        self._network = network

    async def get(self, resource: Resource, key: ObjectKey) -> KubeObject:
        return await self._network.carry(self._world.get(resource, key), refused=REFUSED, reads=True)

    async def get_metadata(self, resource: Resource, key: ObjectKey) -> KubeObject:
        return await self._network.carry(self._world.get_metadata(resource, key), refused=REFUSED, reads=True)

    async def create(
        self, resource: Resource, obj: KubeObject, *, dry_run: bool = False, strict: bool = True
    ) -> KubeObject:
        return await self._write(self._world.create(resource, obj, dry_run=dry_run, strict=strict))

    async def apply(self, resource: Resource, obj: KubeObject) -> KubeObject:
        return await self._write(self._world.apply(resource, obj))

    async def apply_status(self, resource: Resource, obj: KubeObject) -> KubeObject:
        return await self._write(self._world.apply_status(resource, obj))

    async def merge_patch(
        self, resource: Resource, key: ObjectKey, patch: KubeObject, *, subresource: str = ""
    ) -> KubeObject:
        """For a subresource the answer is another object, of which only the resourceVersion counts."""
        answer = await self._write(self._world.merge_patch(resource, key, patch))
        return {"metadata": {"resourceVersion": answer["metadata"]["resourceVersion"]}} if subresource else answer

    async def json_patch(self, resource: Resource, key: ObjectKey, operations: Sequence[KubeObject]) -> KubeObject:
        return await self._write(self._world.json_patch(resource, key, operations))

    async def replace(self, resource: Resource, obj: KubeObject) -> KubeObject:
        return await self._write(self._world.replace(resource, obj))

    async def delete(self, resource: Resource, key: ObjectKey, *, uid: str | None = None) -> None:
        await self._network.carry(self._world.delete(resource, key, uid=uid), refused=REFUSED)

    async def _write(self, call: Coroutine[Any, Any, KubeObject]) -> KubeObject:
        return await self._network.carry(call, refused=(*REFUSED, OUTDATED))
