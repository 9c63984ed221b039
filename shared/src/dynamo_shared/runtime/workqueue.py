"""The work queue of a reconciler: keys to reconcile, each at most once at a time.

A key means "reconcile this", never what has happened, so adding it twice is the same as adding it once. A key that is
added during its reconcile is reconciled again afterwards: the newest state wins. A key whose reconcile fails comes back
after a delay that doubles each time, with jitter, so that keys that fail together do not come back together.

Keys wait in lanes, one per namespace, and lanes take turns. Urgent keys come first: they hold up the other keys of
their own lane, and take at most every second turn from other lanes. Failures of a lane use up only its own retries, and
part of the workers is reserved, so that hanging work of one lane does not block the others.
"""

import asyncio
import heapq
import itertools
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from dynamo_shared.aio import Randomness, Turns, delay, ended, spread
from dynamo_shared.kube.errors import KubeError
from dynamo_shared.runtime.metrics import QueueMetrics
from dynamo_shared.runtime.ratelimit import Budgets

K = TypeVar("K", bound=Hashable)

#: Delay after the first failure, in seconds: a write conflict is over within milliseconds.
FIRST_RETRY = 0.005
#: Longest delay, in seconds: a key that fails for long gets one reconcile a minute.
LAST_RETRY = 60.0
#: Failures of one lane that may come back at once, and per second: more of them are a problem that more attempts do not solve.
RETRIES_AT_ONCE = 200
RETRIES_PER_SECOND = 100.0
#: How long work under way may take after the cancellation of the queue, in seconds.
FINISH_WITHIN = 10.0
#: How long urgent work may hold up the other keys of its lane, in seconds, if very much of it comes at once.
HOLD_WITHIN = 2.0
#: Limit of waiting keys that the log names at the end; it only counts further ones.
NAMED = 5

log = structlog.get_logger("dynamo.runtime.workqueue")


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a reconcile; `requeue_after`: reconcile again after this many seconds."""

    requeue_after: float | None = None


class WorkQueue(Generic[K]):
    """Keys that wait to be reconciled. All methods belong to one event loop."""

    def __init__(
        self,
        *,
        metrics: QueueMetrics,
        clock: Callable[[], float] = time.monotonic,
        jitter: Randomness | None = None,
        urgent: Callable[[K], bool] = lambda _: False,
        lane: Callable[[K], str] = lambda _: "",
    ) -> None:
        self._metrics = metrics
        self._clock = clock
        self._jitter = jitter
        self._urgent = urgent
        self._lane = lane
        self._first = Turns[K](lane)  # urgent keys
        self._pressed: set[K] = set()  # urgent keys that are being worked on
        self._urgent_of: dict[str, int] = {}  # by lane: urgent keys that wait or are being worked on
        self._holds: OrderedDict[str, float] = (
            OrderedDict()
        )  # lanes whose rest waits, and until when; the earliest first
        self._ready = Turns[K](lane)  # all other keys
        self._rest_next = False  # whether it is the turn of a key that is not urgent
        self._busy: dict[str, int] = {}  # by lane: keys that are not urgent and are being worked on
        self._most_of_lane = 0  # how many of these one lane may have; 0 for no limit
        self._working: dict[K, float] = {}  # keys that are being worked on, and since when; the earliest first
        self._works: dict[K, asyncio.Task[None]] = {}  # their tasks, where `run` made them
        self._again: set[K] = set()
        self._failures: dict[K, int] = {}
        self._due: dict[K, float] = {}
        self._later: list[tuple[float, int, K]] = []
        self._order = itertools.count()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._waiting_for_urgent: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._ended = asyncio.Event()
        self._closing = False
        self._retries = Budgets(RETRIES_PER_SECOND, RETRIES_AT_ONCE, clock)
        metrics.depth.set_function(self.__len__)
        metrics.longest.set_function(self._longest)

    def __len__(self) -> int:
        return len(self._ready) + len(self._first)

    @property
    def working(self) -> frozenset[K]:
        """Keys that are being reconciled."""
        return frozenset(self._working)

    def add(self, key: K, after: float = 0.0) -> None:
        """Request a reconcile of a key in `after` seconds; of several requests the earliest counts."""
        if after > 0:
            due = self._clock() + after
            if key not in self._ready and key not in self._first and due < self._due.get(key, float("inf")):
                self._due[key] = due
                heapq.heappush(self._later, (due, next(self._order), key))
                if len(self._later) > 2 * len(self._due) + 64:
                    # Replaced or fulfilled requests must not pile up until they are due.
                    self._later = [entry for entry in self._later if self._due.get(entry[2]) == entry[0]]
                    heapq.heapify(self._later)
                if (self._waiting or self._waiting_for_urgent) and self._later[0][2] == key:
                    self._set_timer()
            return
        self._due.pop(key, None)
        if key in self._working:
            self._again.add(key)
        elif key not in self._ready and key not in self._first:
            if urgent := self._urgent(key):
                self._first.add(key, self._clock())
                self._hold_lane(self._lane(key))
            else:
                self._ready.add(key, self._clock())
            self._metrics.adds.inc()
            if urgent or self._ready.available:
                self._wake_one(urgent=urgent)
            elif self._waiting:
                # The key is held up, and no other key may come that would wake a worker at the end of the hold.
                self._set_timer()

    def retry(self, key: K, *, at_least: float = 0.0) -> float:
        """Request another reconcile after a failure, after at least `at_least` seconds; returns the delay in seconds."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause = delay(failures, FIRST_RETRY, LAST_RETRY, self._jitter)
        # The server gave the same delay to all that it refused together: spread them.
        wait = spread(at_least, least=1.0, most=1.5, randomness=self._jitter) if at_least else 0.0
        pause = max(pause, wait) + self._retries.take(self._lane(key))
        self._metrics.retries.inc()
        self.add(key, pause)
        return pause

    def forget(self, key: K) -> None:
        """The key's reconcile succeeded: its next failure counts as a first one."""
        self._failures.pop(key, None)

    async def get(self, *, urgent: bool = False) -> K:
        """Wait for the next key (with `urgent`: the next urgent key); the caller must pass it to `done`."""
        while True:
            self._move_due()
            if (waiting := self._next(urgent=urgent)) is not None:
                key, added = waiting.pop()
                if waiting is self._first:
                    self._pressed.add(key)
                    self._rest_next = self._rest_next or (not urgent and self._ready.available)
                else:
                    self._rest_next = False
                    self._begin(self._lane(key))
                now = self._clock()
                self._metrics.waited.observe(now - added)
                self._working[key] = now
                return key
            waiter = asyncio.get_running_loop().create_future()
            idle = self._waiting_for_urgent if urgent else self._waiting
            idle.append(waiter)
            self._set_timer()
            try:
                await waiter
            except asyncio.CancelledError:
                # Another worker must handle the key for which this one was woken.
                if waiter.done() and not waiter.cancelled():
                    if self._first:
                        self._wake_one(urgent=True)
                    if self._ready.available:
                        self._wake_one()
                elif waiter in idle:
                    # A key that was added right after the cancellation has already removed the waiter.
                    idle.remove(waiter)
                raise

    def done(self, key: K) -> None:
        """The reconcile of a key has ended, with or without success."""
        if key not in self._working:
            return
        del self._working[key]
        self._works.pop(key, None)
        lane = self._lane(key)
        if key in self._pressed:
            self._pressed.discard(key)
            self._release_lane(lane)
        else:
            self._end(lane)
        self._ended.set()
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    async def drain(self, concerns: Callable[[K], bool]) -> None:
        """Drop the concerned keys and return when none of them is being reconciled; new ones must not be added."""
        self._drop(concerns)
        while any(concerns(key) for key in self._working):
            self._ended.clear()
            await self._ended.wait()
            self._drop(concerns)

    def abort(self, concerns: Callable[[K], bool]) -> None:
        """Abort the work on the concerned keys and drop them: another replica may be working on them."""
        self._drop(concerns)
        for key, work in self._works.items():
            if concerns(key) and not work.cancelling():
                work.cancel()

    async def run(
        self,
        workers: int,
        handler: Callable[[K], Awaitable[Result]],
        *,
        urgent_workers: int = 0,
        reserved: int = 0,
        finish_within: float = FINISH_WITHIN,
    ) -> None:
        """Reconcile with `workers` workers until cancelled, plus `urgent_workers` for only urgent keys.

        One lane never uses more than `workers` minus `reserved` of them, so that a free worker remains for other lanes.
        A handler's exception is logged, and its key comes back.
        After cancellation no work begins, and work under way has `finish_within` seconds to end.
        """
        self._closing = False
        self._most_of_lane = workers - reserved if reserved else 0
        tasks = [
            asyncio.create_task(self._work_always(handler, urgent=number >= workers), name=f"worker-{number}")
            for number in range(workers + urgent_workers)
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except asyncio.CancelledError:
            self._closing = True
            if under_way := tuple(self._works.values()):
                await asyncio.wait(under_way, timeout=finish_within)
            raise
        finally:
            cut_off = [str(key) for key in self._works]
            await ended(*tasks)
            self._report_left(cut_off)

    async def _work_always(self, handler: Callable[[K], Awaitable[Result]], *, urgent: bool) -> None:
        """One worker. Each key has its own task: a cancellation of it, or changes of its context, end with it."""
        while True:
            key = await self.get(urgent=urgent)
            work = self._start(key, handler)
            try:
                await asyncio.wait((work,))
            except asyncio.CancelledError:
                await ended(work)
                raise

    def _start(self, key: K, handler: Callable[[K], Awaitable[Result]]) -> asyncio.Task[None]:
        work = self._works[key] = asyncio.create_task(self._work(key, handler), name=f"work on {key}")
        # However the task ends, even if it is cancelled before its first step.
        work.add_done_callback(lambda _: self.done(key))
        return work

    async def _work(self, key: K, handler: Callable[[K], Awaitable[Result]]) -> None:
        structlog.contextvars.bind_contextvars(key=str(key))
        try:
            result = await handler(key)
        except KubeError as error:
            # An answer of the API server, not a bug: it is unavailable, or another writer was faster.
            pause = self.retry(key, at_least=error.retry_after or 0.0)
            log.info("reconcile failed, will be retried", reason=error.reason, error=str(error), delay=round(pause, 3))
        except asyncio.CancelledError:
            if not self._works[key].cancelling():
                log.warning("reconcile cancelled itself, will be retried", delay=round(self.retry(key), 3))
            elif not self._closing:
                log.info("reconcile aborted: this replica no longer owns the key")
        except Exception:
            log.exception("reconcile failed, will be retried", delay=round(self.retry(key), 3))
        else:
            self.forget(key)
            if result.requeue_after is not None:
                self.add(key, max(result.requeue_after, 0.001))

    def _report_left(self, cut_off: list[str]) -> None:
        """Log the remaining keys, which explains delays: this replica or the next one reads them again from STATE."""
        if not (cut_off or len(self)):
            return
        first = [str(key) for key in itertools.islice(itertools.chain(self._first, self._ready), NAMED)]
        say = log.warning if cut_off else log.info
        say("stopped with keys not reconciled", cut_off=cut_off, waiting=len(self), first=first, later=len(self._due))

    def _longest(self) -> float:
        """Duration of the longest-running work, in seconds."""
        since = next(iter(self._working.values()), None)
        return self._clock() - since if since is not None else 0.0

    def _drop(self, concerns: Callable[[K], bool]) -> None:
        known = (*self._ready, *self._first, *self._due, *self._again, *self._failures)
        for key in [key for key in known if concerns(key)]:
            self._ready.discard(key)
            if self._first.discard(key):
                self._release_lane(self._lane(key))
            self._due.pop(key, None)
            self._failures.pop(key, None)
            self._again.discard(key)

    def _next(self, *, urgent: bool) -> Turns[K] | None:
        """The queue of the next key; None if no key can be taken, for example at the end."""
        if self._closing:
            return None
        rest = not urgent and self._ready.available
        if self._first and not (rest and self._rest_next):
            return self._first
        return self._ready if rest else None

    def _hold_lane(self, lane: str) -> None:
        """Count one more urgent key of a lane: the first one holds up the other keys of the lane."""
        self._urgent_of[lane] = count = self._urgent_of.get(lane, 0) + 1
        if count == 1:
            self._holds[lane] = self._clock() + HOLD_WITHIN
            self._park(lane)

    def _release_lane(self, lane: str) -> None:
        """Count one urgent key of a lane less: after the last one the other keys of the lane continue."""
        self._urgent_of[lane] -= 1
        if not self._urgent_of[lane]:
            del self._urgent_of[lane]
            if self._holds.pop(lane, None) is not None:
                self._park(lane)
                self._wake_rest()

    def _begin(self, lane: str) -> None:
        self._busy[lane] = self._busy.get(lane, 0) + 1
        self._park(lane)

    def _end(self, lane: str) -> None:
        self._busy[lane] -= 1
        if not self._busy[lane]:
            del self._busy[lane]
        self._park(lane)
        if self._ready.available:
            self._wake_one()

    def _park(self, lane: str) -> None:
        """Skip a lane while it is held up or uses as many workers as it may."""
        full = self._most_of_lane and self._busy.get(lane, 0) >= self._most_of_lane
        self._ready.park(lane, bool(lane in self._holds or full))

    def _wake_rest(self) -> None:
        if self._ready.available:
            for _ in range(min(len(self._ready), len(self._waiting))):
                self._wake_one()

    def _wake_one(self, *, urgent: bool = False) -> None:
        """Wake a worker for a key; for an urgent key preferably one that handles only urgent keys."""
        for idle in (self._waiting_for_urgent, self._waiting) if urgent else (self._waiting,):
            while idle:
                waiter = idle.popleft()
                if not waiter.done():
                    waiter.set_result(None)
                    return

    def _move_due(self) -> None:
        """Move due keys to the ready ones, and end expired holds."""
        now = self._clock()
        while self._holds and next(iter(self._holds.values())) <= now:
            lane, _ = self._holds.popitem(last=False)
            self._park(lane)
            self._wake_rest()
        while self._later:
            due, _, key = self._later[0]
            if self._due.get(key) == due:  # otherwise an earlier request replaced this one, or it was fulfilled
                if due > now:
                    return
                self.add(key)
            heapq.heappop(self._later)

    def _set_timer(self) -> None:
        """Set the timer for the next due key or the end of the next hold."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = [self._later[0][0]] if self._later else []
        if self._ready and self._holds:
            due.append(next(iter(self._holds.values())))
        if due:
            pause = max(0.0, min(due) - self._clock())
            self._timer = asyncio.get_running_loop().call_later(pause, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer = None
        self._move_due()
        if self._waiting or self._waiting_for_urgent:
            self._set_timer()
