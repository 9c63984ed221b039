"""The state of one model on one worker: the desired adapter, the loaded one, errors. Pure.

A small state machine. `set_desired` sets the desired adapter; `settle.py` works towards it, one request after the
other. `version` counts changes of the desired adapter, so that the result of work for an earlier one never counts for
the present one.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Self

from dynamo_shared.api.resources import ObjectKey

from dynamo_model_discovery.lora.adapter import Adapter
from dynamo_model_discovery.models.workers import Worker

#: The time of a listing that was never read.
NEVER = float("-inf")


@dataclass(slots=True)
class AdapterState:
    """The state of one model on one worker. Only the keeper's event loop changes it."""

    model: ObjectKey
    worker: Worker
    adapter: Adapter | None = None
    """the desired adapter; None: unload"""
    stale: set[str] = field(default_factory=set)
    """names that shall not be loaded (or not as they are), and may be"""
    unanswered: set[str] = field(default_factory=set)
    """names that were asked for without an answer: they may be loaded yet, whatever a listing says now"""
    loaded: bool = False
    """whether a listing of this incarnation had the adapter"""
    published: bool = False
    """whether frontends can know of it, as far as the worker says so; asked until it is so"""
    asked: bool = False
    """whether this platform asked for the adapter"""
    failure: str = ""
    failures: int = 0
    """in a row"""
    version: int = 1
    settled_version: int = 0
    busy: bool = False
    again: bool = False
    """whether another try was asked for meanwhile"""
    last_listed: float = NEVER
    """when a listing was read last, by the keeper's clock"""

    @classmethod
    def unknown(cls, model: ObjectKey, worker: Worker, adapter: Adapter | None, stale: Collection[str]) -> Self:
        """The state of an unknown worker: an earlier replica may have just requested any of the stale names."""
        return cls(model, worker, adapter, set(stale), set(stale))

    @property
    def settled(self) -> bool:
        """Whether the desired adapter is reached, as far as known."""
        return self.settled_version == self.version and not self.busy

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do: a worker that is not ready loads nothing, but may have to unload."""
        return self.adapter is not None and not self.worker.ready

    def set_desired(self, worker: Worker, adapter: Adapter | None, stale: Collection[str]) -> bool:
        """Set the desired adapter; returns whether there is something to do now.

        `stale`: names that may be loaded for the model but must be unloaded or reloaded: an earlier replica may have
        requested the previous adapter.
        """
        again = worker.incarnation != self.worker.incarnation
        back = worker.ready and not self.worker.ready
        changed = adapter != self.adapter
        self.worker = worker
        if again:
            # A restart clears the worker's memory; earlier requests get no answer any more.
            self.loaded, self.asked, self.published = False, False, False
            self.unanswered.clear()
            self.failure, self.failures = "", 0
        if changed:
            if self.adapter is not None and (self.asked or self.loaded):
                self.stale.add(self.adapter.name)
            self.adapter, self.loaded, self.asked, self.published = adapter, False, False, False
            # The failure was about another adapter. But the worker did fail last time.
            self.failure, self.failures = "", min(self.failures, 1)
            self.stale.update(stale)
            if self.last_listed == NEVER:
                self.unanswered.update(stale)
        if back:
            # The worker may have lost the adapter: it counts only after it reports the adapter again.
            self.loaded, self.published = False, False
        if again or back or changed:
            self.version += 1
            return not self.idle
        return False

    def waits_for(self, debt: Self) -> bool:
        """Whether the desired name must be unloaded first, for a deleted model."""
        return self.adapter is not None and self.adapter.name in debt.stale

    def take_over(self, debts: Iterable[Self]) -> bool:
        """Take over the unloading that this state waits for: the first of these states that no task works on. Returns
        whether there is one.
        """
        debt = next((debt for debt in debts if not debt.busy), None)
        if debt is None or self.adapter is None:
            return False
        name = self.adapter.name
        debt.stale.discard(name)
        self.stale.add(name)
        if name in debt.unanswered:
            self.unanswered.add(name)
        self.loaded = False
        self.version += 1
        return True

    def record_listing(self, names: Collection[str], now: float) -> None:
        """A listing was read."""
        self.last_listed = now
        self.loaded = self.adapter is not None and self.adapter.name in names and self.adapter.name not in self.stale

    def lost(self) -> None:
        """A listing lacks the worker's adapter: it is loaded again, and counts after that."""
        self.loaded = False
        self.version += 1

    def failed(self, message: str, version: int) -> bool:
        """An attempt for that version failed; returns whether the reason is new."""
        if version != self.version:
            self.failures = max(self.failures, 1)
            return False
        self.failures += 1
        if self.loaded and self.failures == 1:
            # The probe failed once: a busy worker still has its adapter.
            return False
        news = message != self.failure
        self.failure, self.loaded = message, False
        return news

    def succeeded(self, version: int) -> None:
        """An attempt for that version succeeded."""
        self.failure, self.failures = "", 0
        self.settled_version = version
