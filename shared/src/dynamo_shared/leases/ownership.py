"""The two questions that a replica asks before it works: is this key mine, and am I the active one?"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.leases.rendezvous import ALL

Listener: TypeAlias = Callable[[], None]
GainListener: TypeAlias = Callable[[frozenset[int]], None]
"""Given the partitions that were gained, reconciles their keys."""
Drainer: TypeAlias = Callable[[Callable[[ObjectKey], bool]], Awaitable[None]]
"""Given which keys are to be given away, returns when no work on them is under way (and none begins by itself)."""


class Ownership(ABC):
    """Which keys this replica may work on. The answer can change at any moment, and is right when it is asked."""

    def __init__(self) -> None:
        self.detach()

    @abstractmethod
    def owns(self, key: ObjectKey) -> bool:
        """Whether this replica may work on a key now."""

    @abstractmethod
    def keeps(self) -> frozenset[int]:
        """Partitions whose objects this replica has to know: of keys that it works on, or may own without further notice."""

    @abstractmethod
    def may_write(self) -> bool:
        """Whether what this replica works on can still be its own; asked right before each write is sent."""

    def on_gain(self, listener: GainListener) -> None:
        """Call back when partitions were gained, whose keys the listener then has to reconcile."""
        self._gain.append(listener)

    def on_loss(self, listener: Listener) -> None:
        """Call back when keys were lost at once: work on what is not owned any more must end now."""
        self._loss.append(listener)

    def before_release(self, drainer: Drainer) -> None:
        """Await this before keys are given away to another replica: `WorkQueue.drain` is made for it."""
        self._drainers.append(drainer)

    def detach(self) -> None:
        """Forget all listeners and drainers: their owners are gone."""
        self._gain: list[GainListener] = []
        self._loss: list[Listener] = []
        self._drainers: list[Drainer] = []

    def _report_gain(self, partitions: frozenset[int]) -> None:
        for listener in self._gain:
            listener(partitions)

    def _report_loss(self) -> None:
        for listener in self._loss:
            listener()


class Leadership(Protocol):
    """Whether this replica is the active one of its service."""

    async def wait_elected(self) -> None:
        """Return as soon as it is."""
        ...

    async def wait_lost(self) -> None:
        """Return as soon as it is no longer."""
        ...


class AllKeys(Ownership):
    """Ownership of a single replica: nothing is ever gained, lost or given away."""

    def owns(self, key: ObjectKey) -> bool:
        """Always."""
        del key
        return True

    def keeps(self) -> frozenset[int]:
        """All of them."""
        return ALL

    def may_write(self) -> bool:
        """Always."""
        return True


class AlwaysLeader:
    """Leadership of a single replica."""

    async def wait_elected(self) -> None:
        """At once."""

    async def wait_lost(self) -> None:
        """Never."""
        await asyncio.Event().wait()
