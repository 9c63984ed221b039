"""The state of one model on one worker: the desired adapter, the loaded one, errors. Pure.

`set_desired` sets the desired adapter; `settle.py` reaches it with one request after the other. `version` counts changes
of the desired adapter, so that the result of requests for an earlier adapter is not used for the present one.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Self

from dynamo_shared.api.resources import ObjectKey

from dynamo_model_discovery.lora.adapter import Adapter
from dynamo_model_discovery.models.workers import Worker

#: The time of the last listing before the first one.
NEVER = float("-inf")


@dataclass(slots=True)
class AdapterState:
    """The state of one model on one worker. Only the keeper's event loop changes it."""

    model: ObjectKey
    worker: Worker
    adapter: Adapter | None = None
    """the desired adapter; None means unload"""
    stale: set[str] = field(default_factory=set)
    """names that may be loaded and must be unloaded, also the desired name if it may have another source"""
    unanswered: set[str] = field(default_factory=set)
    """names with a load request without a response: the worker may still load them, even if a listing lacks them"""
    loaded: bool = False
    """whether a listing of this incarnation had the adapter"""
    published: bool = False
    """whether the worker has published the adapter for frontends; checked until it is true"""
    requested: bool = False
    """whether a load of the adapter was requested"""
    failure: str = ""
    """the last error; empty after a success"""
    failures: int = 0
    """number of consecutive failures"""
    version: int = 1
    settled_version: int = 0
    """the version of the last success"""
    busy: bool = False
    """whether a task works on this state"""
    rerun: bool = False
    """whether another run was requested while a task worked"""
    last_listed: float = NEVER
    """time of the last listing, by the keeper's clock"""

    @classmethod
    def unknown(cls, model: ObjectKey, worker: Worker, adapter: Adapter | None, stale: Collection[str]) -> Self:
        """The state of a new worker: an earlier replica may have just requested any of the stale names."""
        return cls(model, worker, adapter, set(stale), set(stale))

    @property
    def settled(self) -> bool:
        """Whether the last attempt reached the desired adapter."""
        return self.settled_version == self.version and not self.busy

    @property
    def idle(self) -> bool:
        """Whether no requests are due: a worker that is not ready loads no adapter, but may have to unload one."""
        return self.adapter is not None and not self.worker.ready

    def set_desired(self, worker: Worker, adapter: Adapter | None, stale: Collection[str]) -> bool:
        """Set the desired adapter; returns whether requests are due now.

        `stale`: names that may be loaded for the model but must be unloaded or reloaded: an earlier replica may have
        requested the previous adapter.
        """
        restarted = worker.incarnation != self.worker.incarnation
        became_ready = worker.ready and not self.worker.ready
        changed = adapter != self.adapter
        self.worker = worker
        if restarted:
            # A restart unloads all adapters, and ends all requests.
            self.loaded, self.requested, self.published = False, False, False
            self.unanswered.clear()
            self.failure, self.failures = "", 0
        if changed:
            if self.adapter is not None and (self.requested or self.loaded):
                self.stale.add(self.adapter.name)
            self.adapter, self.loaded, self.requested, self.published = adapter, False, False, False
            # The failure concerned another adapter, but the worker remains in the queue of failing workers.
            self.failure, self.failures = "", min(self.failures, 1)
            self.stale.update(stale)
            if self.last_listed == NEVER:
                self.unanswered.update(stale)
        if became_ready:
            # The worker may have lost the adapter: a new listing must confirm it.
            self.loaded, self.published = False, False
        if restarted or became_ready or changed:
            self.version += 1
            return not self.idle
        return False

    def waits_for(self, other: Self) -> bool:
        """Whether the other state must first unload the desired name (for a deleted model)."""
        return self.adapter is not None and self.adapter.name in other.stale

    def take_over(self, unloads: Iterable[Self]) -> bool:
        """Take over the unload of the desired name from the first of these states that is not busy; returns whether there
        is one.
        """
        unload = next((unload for unload in unloads if not unload.busy), None)
        if unload is None or self.adapter is None:
            return False
        name = self.adapter.name
        unload.stale.discard(name)
        self.stale.add(name)
        if name in unload.unanswered:
            self.unanswered.add(name)
        self.loaded = False
        self.version += 1
        return True

    def record_listing(self, names: Collection[str], now: float) -> None:
        """Record a listing, which was read at time `now`."""
        self.last_listed = now
        self.loaded = self.adapter is not None and self.adapter.name in names and self.adapter.name not in self.stale

    def lost(self) -> None:
        """A listing lacks the loaded adapter: it must be loaded again."""
        self.loaded = False
        self.version += 1

    def failed(self, message: str, version: int) -> bool:
        """An attempt for that version failed; returns whether the message is new."""
        if version != self.version:
            self.failures = max(self.failures, 1)
            return False
        self.failures += 1
        if self.loaded and self.failures == 1:
            # The first failed probe may be a busy worker, which still has its adapter.
            return False
        is_new = message != self.failure
        self.failure, self.loaded = message, False
        return is_new

    def succeeded(self, version: int) -> None:
        """An attempt for that version succeeded."""
        self.failure, self.failures = "", 0
        self.settled_version = version
