"""How things stand between one model and one worker: what shall be loaded there, what is, what went wrong. Pure.

A standing is a small state machine. `wish` says what shall be; `settle` (beside this) works towards it, one request after
the other; `version` counts wishes, so that work for an earlier one is never taken for work on the present one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from dynamo_shared.api.resources import ObjectKey

from dynamo_model_discovery.lora.adapter import Adapter
from dynamo_model_discovery.models.workers import Worker


@dataclass(slots=True)
class Standing:
    """One worker, as far as one model is concerned. Changed by its keeper's loop only."""

    model: ObjectKey
    worker: Worker
    adapter: Adapter | None = None
    """what shall be loaded; None: nothing any more"""
    stale: set[str] = field(default_factory=set)
    """names that shall not be loaded (or not as they are), and may be"""
    unanswered: set[str] = field(default_factory=set)
    """names that were asked for without an answer: they may be loaded yet, whatever a listing says now"""
    loaded: bool = False
    """whether a listing of this incarnation had the adapter"""
    asked: bool = False
    """whether the adapter may have come by our asking"""
    failure: str = ""
    failures: int = 0
    """in a row"""
    version: int = 1
    settled_version: int = 0
    busy: bool = False
    again: bool = False
    """whether another look was asked for while it was being worked on"""
    last_heard: float = float("-inf")
    """when a listing was read last, by the keeper's clock"""

    @classmethod
    def unknown(cls, model: ObjectKey, worker: Worker, adapter: Adapter | None, stale: Collection[str]) -> Standing:
        """Of a worker of which nothing is known: who was here before may have asked for any of the stale names just now."""
        return cls(model, worker, adapter, set(stale), set(stale))

    @property
    def settled(self) -> bool:
        """Whether the present wish has come true, as far as is known."""
        return self.settled_version == self.version and not self.busy

    @property
    def idle(self) -> bool:
        """Whether nothing is asked of it: a worker that is not ready loads nothing, but may have to let go."""
        return self.adapter is not None and not self.worker.ready

    def wish(self, worker: Worker, adapter: Adapter | None, stale: Collection[str]) -> bool:
        """Take in what shall be; says whether there is something to do now.

        `stale` are names that were loaded for the model at any time; they count when nothing shall be loaded any more.
        """
        again = worker.incarnation != self.worker.incarnation
        back = worker.ready and not self.worker.ready
        changed = adapter != self.adapter
        self.worker = worker
        if again:
            # Its memory went with its containers; what it was asked before it cannot answer any more.
            self.loaded, self.asked = False, False
            self.unanswered.clear()
            self.failure, self.failures = "", 0
        if changed:
            if self.adapter is not None and (self.asked or self.loaded):
                self.stale.add(self.adapter.name)
            self.adapter, self.loaded, self.asked = adapter, False, False
            if adapter is None:
                self.stale.update(stale)
        if back:
            # It may have lost what it had: it counts when it has said so.
            self.loaded = False
        if again or back or changed:
            self.version += 1
            return not self.idle
        return False

    def heard(self, names: Collection[str], now: float) -> None:
        """A listing was read."""
        self.last_heard = now
        self.loaded = self.adapter is not None and self.adapter.name in names and self.adapter.name not in self.stale

    def failed(self, message: str) -> bool:
        """A try ended badly; says whether that is news."""
        news = message != self.failure
        self.failure = message
        self.failures += 1
        self.loaded = False
        return news

    def succeeded(self, version: int) -> None:
        """A try ended well, for the wish of that version."""
        self.failure, self.failures = "", 0
        self.settled_version = version
