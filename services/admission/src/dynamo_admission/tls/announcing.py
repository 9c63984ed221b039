"""When which bundle was written to where the API server reads it."""

from __future__ import annotations

import asyncio

from dynamo_admission.tls.certificates import Changed, Clock
from dynamo_admission.tls.timing import Timing


class Announced:
    """The bundle that this replica last announced, and since when."""

    def __init__(self, clock: Clock, timing: Timing) -> None:
        self._clock = clock
        self._timing = timing
        self._bundle: bytes | None = None
        self._since = 0.0

    def settled(self, bundle: bytes) -> bool:
        """Whether the API server can be relied on to know exactly this bundle."""
        return bundle == self._bundle and self._clock() >= self._since + self._timing.settle

    async def announce(self, bundle: bytes, changed: Changed) -> None:
        """Await `changed` where the bundle is another one than the last; TimeoutError where it takes too long."""
        if bundle == self._bundle:
            return
        # Unknown until it is done: what fails halfway may have been written.
        self._bundle = None
        async with asyncio.timeout(self._timing.announce):
            await changed()
        self._bundle, self._since = bundle, self._clock()
