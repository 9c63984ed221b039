"""Work whose time grows with what a user wrote, done at once; the sizes that it was given away for are recorded."""

from collections.abc import Callable
from typing import TypeVar

from dynamo_shared.aio import Offload

T = TypeVar("T")


class RecordedOffload(Offload):
    def __init__(self) -> None:
        super().__init__(above=0, at_once=1)
        self.sizes: list[int] = []

    async def run(self, size: int, work: Callable[[], T]) -> T:
        self.sizes.append(size)
        return work()
