"""Simulates one engine: continuous batching of prompts and decode tokens, iteration by iteration, as events.

Iterations without changes (no prompt, no sequence joins or ends) are simulated together as one leg, which is why half
an hour of traffic takes only seconds.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from heapq import heappop, heappush
from math import ceil
from statistics import pvariance
from typing import Protocol

from dynamo_planner.core.observation import EngineWork, ForwardPass, Pool
from dynamo_planner.replay.measured_engine import MeasuredEngine
from dynamo_planner.replay.traces import BLOCK_TOKENS, TraceRequest

LONGEST_LEG = 32
"""Iterations that are simulated in one step: within this many, the growth of the cache is negligible."""


class Job:
    """A request in progress; times in seconds, None before they are known."""

    __slots__ = ("cached", "context", "finished", "first", "left", "prompt_left", "request")

    def __init__(self, request: TraceRequest) -> None:
        self.request = request
        self.prompt_left = request.isl
        self.cached = 0
        """cached prompt tokens"""
        self.context = request.isl
        self.left = request.osl
        """tokens that remain to be generated"""
        self.first: float | None = None
        self.finished: float | None = None

    @property
    def ttft(self) -> float | None:
        """Seconds to the first token."""
        return None if self.first is None else self.first - self.request.at

    @property
    def itl(self) -> float | None:
        """Mean seconds between tokens; 0 for a single one."""
        if self.first is None or self.finished is None:
            return None
        return (self.finished - self.first) / max(1, self.request.osl - 1)


class EngineEvents(Protocol):
    """What an engine reports, when it happens."""

    def done(self, job: Job, now: float) -> None:
        """The prompt is computed (prefill pools), or the request has ended."""

    def first_token(self, job: Job, now: float) -> None:
        """The request has its first token."""

    def tokens(self, count: int, each: float, now: float) -> None:
        """Further tokens, each this many seconds after the one before of its request."""


class SimulatedEngine:
    """One replica's engine."""

    def __init__(
        self,
        name: str,
        pool: Pool,
        truth: MeasuredEngine,
        schedule: Callable[[float, Callable[[], None]], None],
        events: EngineEvents,
        *,
        prompts_only: bool,
        chunk: int,
        max_num_seqs: int,
        max_kv_tokens: int,
        one_after_another: bool = False,
    ) -> None:
        self.name = name
        self.pool = pool
        self._truth = truth
        self._schedule = schedule
        self._events = events
        self._prompts_only = prompts_only
        self._chunk = chunk
        self._max_num_seqs = max_num_seqs
        self._max_kv_tokens = max_kv_tokens
        self._one_after_another = one_after_another
        self._cache: OrderedDict[int, None] = OrderedDict()
        self._prompts: deque[Job] = deque()
        self._admitted = 0
        """prompts, from the left, with reserved space in the KV cache"""
        self.prompt_tokens = 0
        """tokens of prompts that are not computed yet, including those of the running iteration"""
        self._joining: deque[Job] = deque()
        self._active: list[tuple[int, int, Job]] = []
        self._order = 0
        self._kv = 0
        self._reserved = 0
        self._count = 0
        """completed iterations"""
        self._began = 0.0
        self._each = 0.0
        """seconds of each iteration of the leg"""
        self._planned = 0
        """iterations of the leg; 0 means idle"""
        self._version = 0
        self._running: list[tuple[Job, int]] = []
        self._fresh: list[Job] = []
        """sequences that get their first token with the running leg"""

    @property
    def idle(self) -> bool:
        """Whether the engine has no work."""
        return not self._planned and not self._prompts and not self._joining and not self._active

    @property
    def kv_tokens(self) -> int:
        """Tokens in the cache, and soon to be in it: routers weigh decode engines by this number."""
        return self._kv + sum(job.context for job in self._joining)

    def cached_tokens(self, request: TraceRequest) -> int:
        """Tokens of the prompt in this engine's cache; the last token is always computed."""
        hits = 0
        for block in request.blocks:
            if block not in self._cache:
                break
            hits += 1
        return min(hits * BLOCK_TOKENS, request.isl - 1)

    def take_prompt(self, job: Job, now: float) -> None:
        """Accept a request whose prompt must be computed here."""
        job.cached = self.cached_tokens(job.request)
        self._remember(job.request)
        job.prompt_left = job.request.isl - job.cached
        self.prompt_tokens += job.prompt_left
        self._prompts.append(job)
        self._wake(now)

    def take_sequence(self, job: Job, now: float) -> None:
        """Accept a request whose prompt was computed by another engine."""
        self._joining.append(job)
        self._wake(now)

    def forward_pass(self, now: float) -> ForwardPass:
        """The latest report of the engine: its running iteration, or a heartbeat."""
        scheduled, wall = EngineWork(), 0.0
        if self._planned:
            tokens = [count for _, count in self._running]
            passed = min(self._planned, max(0, int((now - self._began) / self._each))) if self._each else 0
            scheduled = EngineWork(
                num_prefill_requests=len(tokens),
                sum_prefill_tokens=sum(tokens),
                var_prefill_length=pvariance(tokens) if len(tokens) > 1 else 0.0,
                num_decode_requests=len(self._active),
                sum_decode_kv_tokens=self._kv + passed * len(self._active),
            )
            wall = self._each
        waiting = self.prompt_tokens - sum(count for _, count in self._running)
        queued = EngineWork(
            num_prefill_requests=len(self._prompts),
            sum_prefill_tokens=waiting,
            num_decode_requests=len(self._joining),
            sum_decode_kv_tokens=sum(job.context for job in self._joining),
        )
        return ForwardPass(pool=self.pool, worker_id=self.name, wall_time=wall, scheduled=scheduled, queued=queued)

    def _remember(self, request: TraceRequest) -> None:
        cache = self._cache
        for block in request.blocks:
            cache[block] = None
            cache.move_to_end(block)
        while len(cache) > self._max_kv_tokens // BLOCK_TOKENS:
            cache.popitem(last=False)

    def _wake(self, now: float) -> None:
        if not self._planned:
            self._plan(now)
            return
        # Work that arrives during an iteration joins at its end.
        passed = max(1, ceil((now - self._began) / self._each - 1e-9))
        if passed < self._planned:
            self._planned = passed
            self._arm()

    def _arm(self) -> None:
        self._version += 1
        version = self._version
        end = self._began + self._planned * self._each
        self._schedule(end, lambda: self._ended(version, end))

    def _ended(self, version: int, now: float) -> None:
        if version != self._version:
            return
        passed, active = self._planned, self._active
        self._planned = 0
        self._count += passed
        self._kv += passed * len(active)
        if further := passed * len(active) - len(self._fresh):
            self._events.tokens(further, self._each, now)
        for job in self._fresh:
            self._events.first_token(job, now)
        self._fresh = []
        while active and active[0][0] <= self._count:
            job = heappop(active)[2]
            self._kv -= job.request.isl + job.request.osl
            self._reserved -= job.request.isl + job.request.osl
            job.finished = now
            self._events.done(job, now)
        for job, tokens in self._running:
            job.prompt_left -= tokens
            self.prompt_tokens -= tokens
            if job.prompt_left:
                continue
            self._prompts.popleft()
            self._admitted -= 1
            if self._prompts_only:
                self._reserved -= job.request.isl + job.request.osl
                self._events.done(job, now)
                continue
            # The last chunk of a prompt produces the first token.
            job.first = now
            self._events.first_token(job, now)
            job.left -= 1
            job.context += 1
            if job.left:
                self._join(job)
            else:
                self._reserved -= job.request.isl + job.request.osl
                job.finished = now
                self._events.done(job, now)
        self._running = []
        if not self._planned:
            self._plan(now)

    def _join(self, job: Job) -> None:
        self._order += 1
        heappush(self._active, (self._count + job.left, self._order, job))
        self._kv += job.context

    def _room(self, job: Job, ahead: int) -> bool:
        need = job.request.isl + job.request.osl
        # A sequence larger than the cache is admitted alone; otherwise, it would wait without end.
        fits = self._reserved + need <= self._max_kv_tokens or not self._reserved
        return fits and len(self._active) + ahead < self._max_num_seqs

    def _plan(self, now: float) -> None:
        fresh: list[Job] = []
        while self._joining and self._room(self._joining[0], self._admitted):
            job = self._joining.popleft()
            self._reserved += job.request.isl + job.request.osl
            self._join(job)
            fresh.append(job)
        self._running = self._pieces()
        batch = len(self._active)
        tokens = sum(count for _, count in self._running)
        if not batch and not tokens:
            return
        if self._running:
            self._planned = 1
            self._each = self._mixed(tokens, batch)
        else:
            self._planned = min(self._active[0][0] - self._count, LONGEST_LEG)
            self._each = self._truth.decode(batch, self._kv + batch * self._planned / 2)
        self._began = now
        for job in fresh:
            job.first = now + self._each
        self._fresh = fresh
        self._arm()

    def _mixed(self, tokens: int, batch: int) -> float:
        """Seconds of an iteration with `tokens` prompt tokens."""
        if not self._one_after_another or self._prompts_only:
            return self._truth.mixed(tokens, batch, max(self._kv, 1))
        # The mocker computes a decode step for each prompt that continues; a single token comes with the prompt.
        ending = [job for job, count in self._running if count == job.prompt_left and job.left > 1]
        kv = self._kv + sum(job.context for job in ending)
        return self._truth.mixed(tokens, batch + len(ending), max(kv, 1), shared=False)

    def _pieces(self) -> list[tuple[Job, int]]:
        """Prompts, or chunks of them, for the next iteration: first come, first served."""
        room, pieces = max(1, self._chunk - len(self._active)), []
        for place, job in enumerate(self._prompts):
            if place >= self._admitted:
                if not self._room(job, self._admitted):
                    break
                self._reserved += job.request.isl + job.request.osl
                self._admitted += 1
            tokens = min(job.prompt_left, room)
            pieces.append((job, tokens))
            room -= tokens
            if not room:
                break
        return pieces
