"""Several resources followed at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from dynamo_shared.aio import ended
from dynamo_shared.api.resources import Resource
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.reflector import ObjectChange, Reflector

from dynamo_ctl.errors import CtlError, ExitCode

#: Changes that wait to be printed; a slow terminal holds the reflectors up, not the memory.
WAITING = 1000


class ObjectEvent(NamedTuple):
    """A change of an object of the resource called `kind`."""

    kind: str
    obj: dict[str, Any]
    deleted: bool


async def merged(client: KubeClient, resources: Mapping[str, Resource], namespace: str) -> AsyncIterator[ObjectEvent]:
    """All objects there are, then every change, endless. CtlError where the cluster cannot be read at the start."""
    queue: asyncio.Queue[ObjectEvent | CtlError] = asyncio.Queue(WAITING)
    tasks = [
        asyncio.create_task(_follow(client, kind, resource, namespace, queue)) for kind, resource in resources.items()
    ]
    try:
        while True:
            item = await queue.get()
            if isinstance(item, CtlError):
                raise item
            yield item
    finally:
        await ended(*tasks)


async def _follow(
    client: KubeClient, kind: str, resource: Resource, namespace: str, queue: asyncio.Queue[ObjectEvent | CtlError]
) -> None:
    reflector: Reflector | None = None

    def health(ok: bool, message: str) -> None:
        # Before the first contact a user waits at the terminal and can repair it; later it may come back by itself.
        if not ok and (reflector is None or not reflector.last_contact) and not queue.full():
            queue.put_nowait(CtlError(f"cannot watch {resource.id}: {message}", ExitCode.UNREACHABLE))

    reflector = Reflector(client, resource, namespace=namespace, on_health=health)
    async for item in reflector.changes():
        if isinstance(item, ObjectChange):
            await queue.put(ObjectEvent(kind, item.obj, item.kind == "DELETED"))
