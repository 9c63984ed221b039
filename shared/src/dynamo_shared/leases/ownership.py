"""The two questions of a replica before it works: does it own this key, and is it the active replica?"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.leases.rendezvous import ALL

Listener: TypeAlias = Callable[[], None]
GainListener: TypeAlias = Callable[[frozenset[int]], None]
"""Called with the gained partitions; reconciles their keys."""
Drainer: TypeAlias = Callable[[Callable[[ObjectKey], bool]], Awaitable[None]]
"""Called with a predicate of the keys to give away; returns when no work on them is running (and none can begin)."""


class Ownership(ABC):
    """Which keys this replica may work on. The answer can change at any moment, and is right when it is given."""

    is_shared = True
    """Whether another replica may own the same keys after this one."""

    def __init__(self) -> None:
        self.detach()

    @abstractmethod
    def owns(self, key: ObjectKey) -> bool:
        """Whether this replica may work on a key now."""

    @abstractmethod
    def keeps(self) -> frozenset[int]:
        """Partitions whose objects this replica must know: of keys that it works on, or may own without further notice."""

    @abstractmethod
    def may_write(self) -> bool:
        """Whether this replica can still own what it works on; called directly before each write is sent."""

    def on_gain(self, listener: GainListener) -> None:
        """Call back when partitions were gained; the listener must then reconcile their keys."""
        self._gain.append(listener)

    def on_loss(self, listener: Listener) -> None:
        """Call back when keys were lost at once: work on keys that are no longer owned must end now."""
        self._loss.append(listener)

    def before_release(self, drainer: Drainer) -> None:
        """Await this before keys are given away to another replica, for example `WorkQueue.drain`."""
        self._drainers.append(drainer)

    def detach(self) -> None:
        """Remove all listeners and drainers, because their owners have ended."""
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
        """Return as soon as it is active."""
        ...

    async def wait_lost(self) -> None:
        """Return as soon as it is no longer active."""
        ...


class AllKeys(Ownership):
    """Ownership of a single replica: nothing is ever gained, lost or given away."""

    is_shared = False

    def owns(self, key: ObjectKey) -> bool:
        """Always True."""
        del key
        return True

    def keeps(self) -> frozenset[int]:
        """All partitions."""
        return ALL

    def may_write(self) -> bool:
        """Always True."""
        return True


class AlwaysLeader:
    """Leadership of a single replica."""

    async def wait_elected(self) -> None:
        """Return at once."""

    async def wait_lost(self) -> None:
        """Never return."""
        await asyncio.Event().wait()
