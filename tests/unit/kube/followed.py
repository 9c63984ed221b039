"""A reflector of the scripted server, and the answers of such a server."""

import asyncio
import itertools
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from dynamo_shared.api.resources import PODS
from dynamo_shared.kube.reflector import Absent, ObjectChange, Reflector, Synced
from dynamo_shared.kube.transport import MAX_RESPONSE_BYTES


def pod(name: str, version: int, uid: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": {**metadata, "managedFields": [{"manager": "x"}]}, "spec": {"v": version}}


def listed(version: int, *pods: dict[str, Any], more: str = "") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(pods)}


def event(kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": {"apiVersion": "v1", "kind": "Pod", **obj}}


def bookmark(version: int) -> dict[str, Any]:
    return {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": str(version)}}}


def failure(code: int, reason: str = "", **more: Any) -> dict[str, Any]:
    return {"type": "ERROR", "object": {"kind": "Status", "code": code, "reason": reason, "message": reason, **more}}


class Followed:
    """A reflector of the scripted server, and its events."""

    def __init__(
        self,
        server: Any,
        *,
        timeout: float = 5,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        clock: Callable[[], float] | None = None,
        **options: Any,
    ) -> None:
        self.health: list[tuple[bool, str]] = []
        self.waits: list[float] = []
        seconds = itertools.count(1000.0)
        self.reflector = Reflector(
            server.client(timeout=timeout, max_response_bytes=max_response_bytes),
            PODS,
            on_health=lambda ok, message: self.health.append((ok, message)),
            clock=clock or (lambda: next(seconds)),
            sleep=self._sleep,
            randomness=lambda: 0.5,
            **options,
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def take(self, count: int) -> list[str]:
        """The next items in short form: `ADDED a@3`, `SYNCED 5`."""
        return [short(item) for item in await self.items(count)]

    async def items(self, count: int) -> list[ObjectChange | Synced | Absent]:
        results: list[ObjectChange | Synced | Absent] = []
        async with asyncio.timeout(60), aclosing(self.reflector.changes()) as changes:
            async for item in changes:
                results.append(item)
                if len(results) == count:
                    break
        return results


def short(item: ObjectChange | Synced | Absent) -> str:
    if isinstance(item, Absent):
        return "ABSENT"
    if isinstance(item, Synced):
        return f"SYNCED {item.resource_version}"
    return f"{item.kind} {item.key.name}@{item.obj['metadata']['resourceVersion']}"
