"""A writer of statuses for tests: it keeps them."""

from collections.abc import Callable

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.runtime.status_writer import SETTLE, StatusWriter


class Written(StatusWriter):
    """What was to be written, in order; with `wait` it is not written yet, and so is reported to no one."""

    def __init__(self, wait: float | None = None) -> None:
        self.wait = wait
        self.statuses: list[KubeObject] = []
        self.objects: list[KubeObject] = []
        """of which the statuses are"""
        self.urgent: list[bool] = []
        self.settle = 0.0
        self.heeds_progress = True

    async def write(
        self,
        _resource: object,
        obj: KubeObject,
        status: KubeObject,
        *,
        urgent: bool,
        settle: float = SETTLE,
        heeds_progress: bool = True,
        report: Callable[[], None] = lambda: None,
    ) -> float | None:
        self.statuses.append(status)
        self.objects.append(obj)
        self.urgent.append(urgent)
        self.settle, self.heeds_progress = settle, heeds_progress
        if self.wait is None:
            report()
        return self.wait
