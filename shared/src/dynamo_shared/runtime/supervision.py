"""Failures of a service's parts and objects: reported and counted where they happen, so that everything else continues.

A part is a background coroutine. It is restarted when it fails; meanwhile `/readyz` reports it as degraded, or as
failed if the service cannot work without it. An object that cannot be handled causes a log line and a count.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType

import structlog

from dynamo_shared.aio import supervised
from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.runtime.health import Health, HealthState
from dynamo_shared.runtime.metrics import Metrics

log = structlog.get_logger("dynamo.runtime")


@dataclass(frozen=True, slots=True)
class Supervisor:
    """Supervises the parts of one service."""

    service: str
    health: Health
    metrics: Metrics

    async def keep(self, part: str, work: Callable[[], Awaitable[object]], *, essential: bool = False) -> None:
        """Run a part until cancelled; restart it if it fails. While an `essential` part fails, nothing is ready."""
        failures, health_part = self.metrics.part_failures.labels(self.service, part), self.health_part(part)

        def failed(error: Exception) -> None:
            log.error("background task failed, restarting", service=self.service, part=part, exc_info=error)
            failures.inc()
            # Only the kind of error: its text may quote a tenant's input, and anyone who can connect may read `/readyz`.
            words = f"failed with {kind_of(error)}, restarting; see the log"
            self.health.set(health_part, HealthState.FAILED if essential else HealthState.DEGRADED, words)

        def recovered() -> None:
            log.info("background task works again", service=self.service, part=part)
            self.health.forget(health_part)

        try:
            await supervised(work, failed, recovered)
        finally:
            self.health.forget(health_part)

    def isolated(self, resource: Resource, key: ObjectKey) -> "Isolation":
        """A context that limits an error to one object: an error ends the block, is logged and does not propagate."""
        return Isolation(self, resource, key)

    def failed(self, resource: Resource, key: ObjectKey, error: Exception) -> None:
        """Log and count an object that could not be handled."""
        log.error("cannot process object", service=self.service, resource=resource.id, key=str(key), exc_info=error)
        self.metrics.object_failures.labels(self.service, resource.id).inc()

    def health_part(self, part: str) -> str:
        """The name of a failing part in `/readyz`."""
        return f"{self.service}/{part}"


class Isolation:
    """The context of `Supervisor.isolated`. Not a generator, which is slower: each change of an object uses several."""

    __slots__ = ("_key", "_resource", "_supervisor")

    def __init__(self, supervisor: Supervisor, resource: Resource, key: ObjectKey) -> None:
        self._supervisor = supervisor
        self._resource = resource
        self._key = key

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: TracebackType | None) -> bool:
        if not isinstance(error, Exception):
            return False
        self._supervisor.failed(self._resource, self._key, error)
        return True


def kind_of(error: BaseException) -> str:
    """The class name of an error; of an exception group, the names of its errors."""
    if isinstance(error, BaseExceptionGroup):
        return ", ".join(sorted({kind_of(each) for each in error.exceptions}))
    return type(error).__name__
