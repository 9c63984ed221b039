"""One log line for partitions that several services of a process gain together, for example at its start."""

import asyncio
from collections.abc import Iterable
from contextvars import Context

import structlog

#: A gain within this time after the last one joins the line. Seconds.
WITHIN = 1.0
log = structlog.get_logger("dynamo.leases")


class GainLog:
    """Collects what the services of one process gain, and logs it one second after the last gain."""

    def __init__(self) -> None:
        self._gained: dict[str, set[int]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, service: str, partitions: Iterable[int]) -> None:
        """Log these partitions of a service soon."""
        if self._timer is not None:
            # On a busy machine, services start seconds apart.
            self._timer.cancel()
        # In an empty context, without the log fields of the service.
        self._timer = asyncio.get_running_loop().call_later(WITHIN, self.write, context=Context())
        self._gained.setdefault(service, set()).update(partitions)

    def write(self) -> None:
        """Log what was not logged yet: one line for all services that gained the same."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        services: dict[str, list[str]] = {}
        for service, partitions in self._gained.items():
            services.setdefault(ranges(partitions), []).append(service)
        self._gained.clear()
        for gained, together in services.items():
            log.info("partitions gained", services=together, partitions=gained)


def ranges(numbers: Iterable[int]) -> str:
    """Numbers in readable form: `0-3, 7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
