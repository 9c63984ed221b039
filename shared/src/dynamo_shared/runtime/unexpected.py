"""What no one foresaw: an object on which a reconcile fails says so in its status, and does not just wait.

Schemas and admission check what is stored. But a schema leaves parts open, admission may be off, and what other controllers and
pods write is theirs to get right. The work queue logs such a failure and tries again, later each time.
"""

from collections.abc import Awaitable, Callable, Mapping
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
#: An object, why its reconcile failed, and now -> its status that says so, and what users and programs are sent.
Report: TypeAlias = Callable[[KubeObject, str, datetime], tuple[KubeObject, Fact]]


@dataclass(frozen=True, slots=True)
class UnexpectedFailures:
    """Reports what reconciles raise, but for answers of the API server: these are over when they are tried again."""

    service: str
    cache: ObjectCache
    statuses: StatusWriter
    announcer: Announcer
    now: Callable[[], datetime]
    reports: Mapping[Resource, Report]

    def reported(self, resource: Resource, reconcile: Reconcile) -> Reconcile:
        """The same reconcile, which reports what it raises before it does."""

        async def reporting(key: ObjectKey) -> Result:
            try:
                return await reconcile(key)
            except KubeError:
                raise
            except Exception as error:
                if (obj := self.cache.get(resource, key)) is not None:
                    await self._report(resource, obj, error)
                raise

        return reporting

    async def _report(self, resource: Resource, obj: KubeObject, error: Exception) -> None:
        why = quoted(f"{type(error).__name__}: {error}")
        message = f"its reconcile failed, and is tried again: {why}; the log of the {self.service} says where"
        status, fact = self.reports[resource](obj, message, self.now())
        await self.statuses.write(resource, obj, status, urgent=True, report=lambda: self.announcer.announce(obj, fact))
