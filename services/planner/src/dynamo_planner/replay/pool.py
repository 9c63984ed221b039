"""The replicas of one pool: pending, starting, serving, draining, removed; and their GPU time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from dynamo_planner.core.observation import FRESH_FOR, PoolCounts
from dynamo_planner.replay.engine import SimulatedEngine

MOST = 10_000
"""Maximum of simulated replicas of a pool, each an object: a configuration may name any number."""


class ReplicaState(StrEnum):
    """The phase of a replica."""

    PENDING = "pending"
    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    GONE = "gone"


@dataclass(slots=True, eq=False)
class Replica:
    """One replica; it uses its GPUs from its assignment to a node until its removal."""

    engine: SimulatedEngine
    state: ReplicaState
    since: float
    """when it got its GPUs"""
    until: float | None = None


@dataclass(slots=True)
class ReplicaPool:
    """A pool that follows a target like a Deployment: replicas that do not serve are removed first, then the
    youngest.
    """

    gpus: int
    startup: float
    make: Callable[[int], SimulatedEngine]
    schedule: Callable[[float, Callable[[], None]], None]
    became_ready: Callable[[float], None]
    free: Callable[[], float]
    """GPUs that the cluster has free; infinite if it has no limit"""
    target: int = 0
    replicas: list[Replica] = field(default_factory=list)
    gone: list[Replica] = field(default_factory=list)
    _made: int = 0

    def serving(self) -> list[SimulatedEngine]:
        """Engines that take requests."""
        return [replica.engine for replica in self.replicas if replica.state is ReplicaState.READY]

    def reporting(self, now: float) -> list[SimulatedEngine]:
        """Engines with a report that counts: those that drain still compute, and the last report of an engine outlives
        it.
        """
        works = (ReplicaState.READY, ReplicaState.DRAINING)
        reporting = [replica for replica in self.replicas if replica.state in works]
        for replica in self.gone:
            ended = replica.until or 0.0
            if ended >= now - FRESH_FOR and ended - replica.since >= self.startup:
                reporting.append(replica)
        return [replica.engine for replica in reporting]

    def begin(self, count: int) -> None:
        """Create the initial replicas."""
        self.target = count = min(count, MOST)
        for _ in range(count):
            self._made += 1
            self.replicas.append(Replica(self.make(self._made), ReplicaState.READY, 0.0))

    def scale(self, count: int, now: float) -> bool:
        """Set the target; returns whether it changed."""
        count = min(count, MOST)
        if count == self.target:
            return False
        self.target = count
        self.settle(now)
        return True

    def settle(self, now: float) -> None:
        """Start missing replicas and drain surplus ones."""
        living = [r for r in self.replicas if r.state is not ReplicaState.DRAINING]
        for _ in range(self.target - len(living)):
            self._made += 1
            self.replicas.append(Replica(self.make(self._made), ReplicaState.PENDING, now))
        order = (ReplicaState.PENDING, ReplicaState.STARTING, ReplicaState.READY)
        extra = max(0, len(living) - self.target)
        youngest = living[::-1]
        surplus = sorted(youngest, key=lambda r: order.index(r.state))[:extra]
        self._end([replica for replica in surplus if replica.state is not ReplicaState.READY], now)
        for replica in surplus:
            if replica.state is ReplicaState.READY:
                replica.state = ReplicaState.DRAINING
        self.reap(now)
        self.place(now)

    def place(self, now: float) -> None:
        """Give GPUs to pending replicas, while there are free ones."""
        pending = [r for r in self.replicas if r.state is ReplicaState.PENDING]
        # Counting the free GPUs reads all replicas, so it is done once.
        free = self.free() if pending else 0.0
        for replica in pending:
            free -= self.gpus
            if free < 0:
                return
            replica.state, replica.since = ReplicaState.STARTING, now
            if self.startup > 0:
                self.schedule(now + self.startup, lambda replica=replica: self._started(replica, now + self.startup))  # type: ignore[misc]
            else:
                self._started(replica, now)

    def reap(self, now: float) -> None:
        """Remove replicas that have drained."""
        self._end([r for r in self.replicas if r.state is ReplicaState.DRAINING and r.engine.idle], now)

    def counts(self) -> PoolCounts:
        """The counts, as the platform reports them."""
        states = [replica.state for replica in self.replicas]
        return PoolCounts(
            ready=states.count(ReplicaState.READY),
            expected=self.target,
            pending=states.count(ReplicaState.PENDING),
            starting=states.count(ReplicaState.STARTING),
        )

    def gpus_taken(self) -> int:
        """GPUs in use."""
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

    def _end(self, replicas: Sequence[Replica], now: float) -> None:
        if not replicas:
            return
        for replica in replicas:
            if replica.state is not ReplicaState.PENDING:
                self.gone.append(replica)
            replica.state, replica.until = ReplicaState.GONE, now
        self.replicas = [each for each in self.replicas if each.state is not ReplicaState.GONE]
