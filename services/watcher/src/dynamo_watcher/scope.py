"""Announces that this platform manages its one namespace: a lease, renewed while it does."""

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

#: To end a renewal that is under way, and delete the lease. Seconds.
RELEASE_WITHIN = 5.0

log = structlog.get_logger("dynamo.watcher")


@dataclass(frozen=True, slots=True)
class ScopeLease:
    """The lease of one namespace; `duration` and `interval` in seconds."""

    kube: KubeClient
    namespace: str
    version: str
    duration: float
    interval: float
    now: Callable[[], datetime]
    trouble: Callable[[str, str], None]

    async def hold(self) -> None:
        """Hold it until cancelled, then give it up."""
        held: KubeObject | None = None
        renewing: asyncio.Task[KubeObject | None] | None = None
        try:
            while True:
                # The API server has what is cut off in the middle, and only its answer says as which version.
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
        """Delete the lease, unless another replica has renewed it since: then that one owns it. KubeError."""
        metadata = held["metadata"]
        await self.kube.delete(
            LEASES,
            ObjectKey(self.namespace, namespace_scope.NAME),
            uid=metadata["uid"],
            resource_version=metadata["resourceVersion"],
        )

    async def _renew(self) -> KubeObject | None:
        """The lease as it was written; None where that failed."""
        lease = namespace_scope.lease(self.namespace, self.version, self.duration, self.now())
        # A platform of several namespaces holds one in each: one that is renewed says nothing of the others.
        subject = f"lease {self.namespace}/{namespace_scope.NAME}"
        try:
            written = await self.kube.apply(LEASES, lease)
        except KubeError as error:
            log.warning("the namespace's lease is not renewed", namespace=self.namespace, error=str(error))
            self.trouble(subject, str(error))
            return None
        self.trouble(subject, "")
        return written
