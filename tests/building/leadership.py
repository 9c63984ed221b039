"""Leadership that a test decides."""

import asyncio


class Leadership:
    """The test elects and deposes by setting the events."""

    def __init__(self, *, elected: bool = False) -> None:
        self.elected, self.lost = asyncio.Event(), asyncio.Event()
        if elected:
            self.elected.set()

    async def wait_elected(self) -> None:
        await self.elected.wait()

    async def wait_lost(self) -> None:
        await self.lost.wait()
