"""Announces that this platform manages its namespace: it holds and renews a Lease."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import structlog
from dynamo_shared.api import namespace_scope
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import LEASES, ObjectKey
from dynamo_shared.kube import KubeClient, KubeError

#: Time limit to end a running renewal and delete the Lease. Seconds.
RELEASE_WITHIN = 5.0

log = structlog.get_logger("dynamo.watcher")


@dataclass(frozen=True, slots=True)
class ScopeLease:
    """The Lease of one namespace; `duration` and `interval` in seconds."""

    kube: KubeClient
    namespace: str
    version: str
    duration: float
    interval: float
    now: Callable[[], datetime]
    trouble: Callable[[str, str], None]

    async def hold(self) -> None:
        """Hold the Lease until cancelled, then release it."""
        held: KubeObject | None = None
        renewing: asyncio.Task[KubeObject | None] | None = None
        try:
            while True:
                # The API server may complete a cancelled write, and only its answer has the resourceVersion.
                renewing = asyncio.create_task(self._renew())
                held = await asyncio.shield(renewing) or held
                await asyncio.sleep(self.interval)
        finally:
            with contextlib.suppress(KubeError, TimeoutError):
                async with asyncio.timeout(RELEASE_WITHIN):
                    if renewing is not None and not renewing.done():
                        held = await renewing or held
                    if held:
                        await self._release(held)

    async def _release(self, held: KubeObject) -> None:
        """Delete the Lease, unless another replica has renewed it since and owns it. KubeError."""
        metadata = held["metadata"]
        await self.kube.delete(
            LEASES,
            ObjectKey(self.namespace, namespace_scope.NAME),
            uid=metadata["uid"],
            resource_version=metadata["resourceVersion"],
        )

    async def _renew(self) -> KubeObject | None:
        """The written Lease; None if the write failed."""
        lease = namespace_scope.lease(self.namespace, self.version, self.duration, self.now())
        # A platform for several namespaces holds one Lease in each: a renewed Lease says nothing about the others.
        subject = f"lease {self.namespace}/{namespace_scope.NAME}"
        try:
            written = await self.kube.apply(LEASES, lease)
        except KubeError as error:
            log.warning("cannot renew the namespace's lease", namespace=self.namespace, error=str(error))
            self.trouble(subject, str(error))
            return None
        self.trouble(subject, "")
        return written
