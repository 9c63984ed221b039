"""An Offload that does all work in a thread and records the sizes and lanes with which it was called."""

from collections.abc import Callable
from typing import TypeVar

from dynamo_shared.aio import Offload

T = TypeVar("T")


class RecordedOffload(Offload):
    def __init__(self) -> None:
        super().__init__(above=0, at_once=1)
        self.sizes: list[int] = []
        self.lanes: list[str | None] = []

    async def run(self, size: int, work: Callable[[], T], lane: str | None = None) -> T:
        self.sizes.append(size)
        self.lanes.append(lane)
        return await super().run(size, work, lane)
