"""Announces that this platform manages its namespace: it holds and renews a Lease."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import structlog
from dynamo_shared.aio import Backoff, ended
from dynamo_shared.api import namespace_scope
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import LEASES, ObjectKey
from dynamo_shared.kube import KubeClient, KubeError

#: Time limit to end a running renewal and delete the Lease. Seconds.
RELEASE_WITHIN = 5.0
#: Pause after the first failed renewal. It grows up to the interval of renewals. Seconds.
FIRST_RETRY = 0.5

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
        backoff = Backoff(FIRST_RETRY, self.interval)
        try:
            while True:
                renewing = asyncio.create_task(self._renew())
                # At a cancellation it continues: the API server may complete a cancelled write, and only its answer has
                # the resourceVersion. But a request may wait for as long as the Lease lasts.
                await asyncio.wait((renewing,), timeout=self.duration / 3)
                if not renewing.done():
                    await ended(renewing)
                    self._report("the API server did not respond in time")
                if renewing.cancelled() or (written := renewing.result()) is None:
                    await asyncio.sleep(backoff.next())
                    continue
                held = written
                backoff.reset()
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
        try:
            written = await self.kube.apply(LEASES, lease)
        except KubeError as error:
            self._report(str(error))
            return None
        self._report("")
        return written

    def _report(self, trouble: str) -> None:
        if trouble:
            log.warning("cannot renew the namespace's lease", namespace=self.namespace, error=trouble)
        # A platform for several namespaces holds one Lease in each: a renewed Lease says nothing about the others.
        self.trouble(f"lease {self.namespace}/{namespace_scope.NAME}", trouble)
