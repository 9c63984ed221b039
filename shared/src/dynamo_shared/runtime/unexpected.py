"""Unexpected failures: if a reconcile of an object fails, the object's status says so.

Schemas and admission check stored objects. But schemas leave parts open, admission may be off, and the data of other
controllers and pods may be wrong. The work queue logs such a failure and retries with growing delays.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.api.untrusted.words import quoted
from dynamo_shared.kube.errors import KubeError
from dynamo_shared.runtime.facts import Announcer, Fact
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.runtime.workqueue import Result
from dynamo_shared.state.cache import ObjectCache

Reconcile: TypeAlias = Callable[[ObjectKey], Awaitable[Result]]
#: An object, why its reconcile failed, and the time -> the status that reports it, and the fact for users and programs.
Report: TypeAlias = Callable[[KubeObject, str, datetime], tuple[KubeObject, Fact]]


@dataclass(frozen=True, slots=True)
class UnexpectedFailures:
    """Reports exceptions of reconciles, except answers of the API server: these end with a retry."""

    service: str
    cache: ObjectCache
    statuses: StatusWriter
    announcer: Announcer
    now: Callable[[], datetime]
    reports: Mapping[Resource, Report]

    def reported(self, resource: Resource, reconcile: Reconcile) -> Reconcile:
        """The reconcile, extended: it reports an exception before raising it."""

        async def reporting(key: ObjectKey) -> Result:
            try:
                return await reconcile(key)
            except KubeError:
                raise
            except Exception as error:
                if (obj := self.cache.get(resource, key)) is not None:
                    # Its own error must not replace this one, which the queue logs; the next attempt reports again.
                    with suppress(KubeError):
                        await self._report(resource, obj, error)
                raise

        return reporting

    async def _report(self, resource: Resource, obj: KubeObject, error: Exception) -> None:
        why = quoted(f"{type(error).__name__}: {error}")
        message = f"reconcile failed, will be retried: {why}; see the log of the {self.service}"
        status, fact = self.reports[resource](obj, message, self.now())
        await self.statuses.write(resource, obj, status, urgent=True, report=lambda: self.announcer.announce(obj, fact))
