"""An Offload that does the work at once and records the sizes with which it was called."""

from collections.abc import Callable
from typing import TypeVar

from dynamo_shared.aio import Offload

T = TypeVar("T")


class RecordedOffload(Offload):
    def __init__(self) -> None:
        super().__init__(above=0, at_once=1)
        self.sizes: list[int] = []

    async def run(self, size: int, work: Callable[[], T], lane: str | None = None) -> T:
        self.sizes.append(size)
        return work()
