"""The replicas of one pool: asked for, starting, serving, draining, gone; and the GPU time that they took."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from dynamo_planner.core.observing import PoolCounts
from dynamo_planner.replay.engine import SimulatedEngine

MOST = 10_000
"""Replicas of a pool that are simulated, each an object of its own: a configuration may name any number."""


class ReplicaState(StrEnum):
    """Where a replica is in its life."""

    PENDING = "pending"
    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    GONE = "gone"


@dataclass(slots=True, eq=False)
class Replica:
    """One replica; it takes its GPUs from the moment that it has a node until it is gone."""

    engine: SimulatedEngine
    state: ReplicaState
    since: float
    """when it got its GPUs"""
    until: float | None = None


@dataclass(slots=True)
class ReplicaPool:
    """A pool that follows a target, as a Deployment does: the youngest go first, those that do not serve before all."""

    gpus: int
    startup: float
    make: Callable[[int], SimulatedEngine]
    schedule: Callable[[float, Callable[[], None]], None]
    became_ready: Callable[[float], None]
    room: Callable[[int], bool]
    """whether the cluster has so many GPUs free"""
    target: int = 0
    replicas: list[Replica] = field(default_factory=list)
    gone: list[Replica] = field(default_factory=list)
    _made: int = 0

    def serving(self) -> list[SimulatedEngine]:
        """Engines that take requests."""
        return [replica.engine for replica in self.replicas if replica.state is ReplicaState.READY]

    def begin(self, count: int) -> None:
        """Replicas that are there at the beginning."""
        self.target = count = min(count, MOST)
        for _ in range(count):
            self._made += 1
            self.replicas.append(Replica(self.make(self._made), ReplicaState.READY, 0.0))

    def scale(self, count: int, now: float) -> bool:
        """Follow another target; whether it is another."""
        count = min(count, MOST)
        if count == self.target:
            return False
        self.target = count
        self.settle(now)
        return True

    def settle(self, now: float) -> None:
        """Start what is missing and drain what is too much."""
        living = [r for r in self.replicas if r.state is not ReplicaState.DRAINING]
        for _ in range(self.target - len(living)):
            self._made += 1
            self.replicas.append(Replica(self.make(self._made), ReplicaState.PENDING, now))
        order = (ReplicaState.PENDING, ReplicaState.STARTING, ReplicaState.READY)
        extra = max(0, len(living) - self.target)
        youngest = living[::-1]
        for replica in sorted(youngest, key=lambda r: order.index(r.state))[:extra]:
            if replica.state is ReplicaState.READY:
                replica.state = ReplicaState.DRAINING
                self.reap(now)
            else:
                self._end(replica, now)
        self.place(now)

    def place(self, now: float) -> None:
        """Give GPUs to replicas that wait for them, as far as there are any."""
        for replica in [r for r in self.replicas if r.state is ReplicaState.PENDING]:
            if not self.room(self.gpus):
                return
            replica.state, replica.since = ReplicaState.STARTING, now
            if self.startup > 0:
                self.schedule(now + self.startup, lambda replica=replica: self._started(replica, now + self.startup))  # type: ignore[misc]
            else:
                self._started(replica, now)

    def reap(self, now: float) -> None:
        """Replicas that drained are gone."""
        for replica in [r for r in self.replicas if r.state is ReplicaState.DRAINING and r.engine.idle]:
            self._end(replica, now)

    def counts(self) -> PoolCounts:
        """As the platform counts them."""
        states = [replica.state for replica in self.replicas]
        return PoolCounts(
            ready=states.count(ReplicaState.READY),
            expected=self.target,
            pending=states.count(ReplicaState.PENDING),
            starting=states.count(ReplicaState.STARTING),
        )

    def gpus_taken(self) -> int:
        """GPUs that are taken now."""
        return self.gpus * sum(replica.state is not ReplicaState.PENDING for replica in self.replicas)

    def gpu_seconds(self, end: float) -> float:
        """GPU time from the beginning to `end`."""
        lives = [r for r in (*self.gone, *self.replicas) if r.state is not ReplicaState.PENDING]
        return self.gpus * sum(
            max(0.0, min(end, end if r.until is None else r.until) - min(r.since, end)) for r in lives
        )

    def _started(self, replica: Replica, now: float) -> None:
        if replica.state is ReplicaState.STARTING:
            replica.state = ReplicaState.READY
            self.became_ready(now)

    def _end(self, replica: Replica, now: float) -> None:
        self.replicas.remove(replica)
        if replica.state is not ReplicaState.PENDING:
            self.gone.append(replica)
        replica.state, replica.until = ReplicaState.GONE, now
