"""The two questions that a replica asks before it works: is this key mine, and am I the active one?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from dynamo_shared.api.resources import ObjectKey


class Ownership(Protocol):
    """Which keys this replica may work on. The answer can change at any moment, and is right when it is asked."""

    def owns(self, key: ObjectKey) -> bool:
        """Whether this replica may work on a key now."""
        ...

    def on_gain(self, listener: Callable[[], None]) -> None:
        """Call back when keys were gained, which the listener then has to look at."""
        ...


class Leadership(Protocol):
    """Whether this replica is the active one of its service."""

    def is_leader(self) -> bool:
        """Whether it is, now."""
        ...

    async def wait_elected(self) -> None:
        """Return as soon as it is."""
        ...

    async def wait_lost(self) -> None:
        """Return as soon as it is no longer."""
        ...


class AllKeys:
    """Ownership of a single replica."""

    def owns(self, key: ObjectKey) -> bool:
        """Always."""
        del key
        return True

    def on_gain(self, listener: Callable[[], None]) -> None:
        """Nothing is ever gained: all is owned from the start."""


class AlwaysLeader:
    """Leadership of a single replica."""

    def is_leader(self) -> bool:
        """Always."""
        return True

    async def wait_elected(self) -> None:
        """At once."""

    async def wait_lost(self) -> None:
        """Never."""
        await asyncio.Event().wait()
