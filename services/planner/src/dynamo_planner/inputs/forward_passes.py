"""Forward passes of engines, from the messages of the Dynamo runtime (planner.md, sections a.2 and f): the newest of
each.

A message is an envelope in MessagePack whose payload is again MessagePack. Engines report each iteration, and about
once per second while idle. An engine that is silent for longer is stopped or unreachable, so its last message is
ignored.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec
from dynamo_shared.api.contracts.planner import Mode

from dynamo_planner.core.observation import FRESH_FOR, EngineWork, ForwardPass, Missing, Pool
from dynamo_planner.inputs.outcome import InputError, InputUnavailable

TOPIC = "forward-pass-metrics"
VERSION = 1
MOST_ENGINES = 4096
"""Engine ranks that are kept per graph; messages of further ranks are ignored."""
FORGET_EVERY = 1.0
"""Seconds between two searches for silent ranks while that many are kept: messages may come by the thousand."""

_LARGEST = 2**53
"""Maximum of an engine's counts: above it, floats are not exact, and real values are far below."""
_SHORTEST, _LONGEST = 1e-7, 86_400.0
"""Seconds of an iteration; logarithms and quotients of other values are no longer numbers."""

_NAMESPACE = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_PREFILL = frozenset({"prefill"})
_DECODE = frozenset({"backend", "decode", "tensorrt_llm", "worker"})


#: A 64-bit number in the current runtime. Thousands are kept, and each message may have a megabyte.
_Id = Annotated[str, msgspec.Meta(max_length=253)]


class _Envelope(msgspec.Struct):
    payload: bytes = b""
    publisher_id: int | _Id | None = None


class _Metrics(msgspec.Struct):
    worker_id: _Id
    version: int = VERSION
    dp_rank: int = 0
    wall_time: float = 0.0
    scheduled_requests: EngineWork = msgspec.field(default_factory=EngineWork)
    queued_requests: EngineWork = msgspec.field(default_factory=EngineWork)


_envelope = msgspec.msgpack.Decoder(_Envelope).decode
_metrics = msgspec.msgpack.Decoder(_Metrics, strict=False).decode


class BadMessage(ValueError):
    """An unreadable message; its text is a token for counting."""


def subject(namespace: str) -> str:
    """The subject on which all engines of a Dynamo namespace report.

    InputError for a namespace with NATS wildcards: it would receive the messages of other graphs' engines.
    """
    if not _NAMESPACE.fullmatch(namespace):
        raise InputError(
            f"{namespace!r} is not a valid Dynamo namespace; letters, digits, '-', '_' and single dots are allowed"
        )
    return f"namespace.{namespace}.component.*.endpoint.*.{TOPIC}"


def component_of(heard_on: str) -> str:
    """The component in a subject, which precedes the endpoint; BadMessage if the subject has none."""
    component, endpoint, _ = heard_on.rpartition(".component.")[2].partition(".endpoint.")
    if not endpoint:
        raise BadMessage("subject")
    return component


def pool_of(component: str, mode: Mode) -> Pool | None:
    """The pool of a runtime component; None for components that are not planned."""
    if component in _PREFILL:
        return Pool.PREFILL if mode in {Mode.DISAGG, Mode.PREFILL} else None
    if component in _DECODE:
        return None if mode is Mode.PREFILL else Pool.DECODE
    return None


def decode(payload: bytes, pool: Pool) -> ForwardPass:
    """The forward pass in a message; BadMessage if there is none."""
    try:
        envelope = _envelope(payload)
        reported = _metrics(envelope.payload)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadMessage("unreadable") from error
    if reported.version != VERSION:
        raise BadMessage("version")
    if reported.wall_time != 0 and not _SHORTEST <= reported.wall_time <= _LONGEST:
        raise BadMessage("wall_time")
    counts = (*_counts(reported.scheduled_requests), *_counts(reported.queued_requests))
    if any(abs(count) > _LARGEST for count in (reported.dp_rank, *counts)):
        raise BadMessage("too_large")
    if min(counts) < 0:
        raise BadMessage("negative")
    return ForwardPass(
        pool=pool,
        # An engine that was restored from a snapshot does not know its id (dynamo#12591).
        worker_id=reported.worker_id or str(envelope.publisher_id or ""),
        dp_rank=reported.dp_rank,
        wall_time=reported.wall_time,
        scheduled=reported.scheduled_requests,
        queued=reported.queued_requests,
    )


def _counts(work: EngineWork) -> tuple[int, ...]:
    return (
        work.num_prefill_requests,
        work.sum_prefill_tokens,
        work.num_decode_requests,
        work.sum_decode_kv_tokens,
    )


class ForwardPasses:
    """The newest forward pass of each engine rank of one graph. `clock` returns monotonic seconds."""

    def __init__(self, mode: Mode, clock: Callable[[], float], *, pools: Mapping[str, Pool] | None = None) -> None:
        self._mode, self._clock = mode, clock
        self._pools = pools or {}
        self._newest: dict[tuple[Pool, str, int], tuple[float, ForwardPass]] = {}
        self._forgot = float("-inf")
        self.ignored: Counter[str] = Counter()
        """ignored messages, by reason"""

    def take(self, heard_on: str, payload: bytes) -> None:
        """Accept a message of the runtime; an unreadable message is counted and ignored."""
        try:
            component = component_of(heard_on)
            pool = self._pools.get(component) or pool_of(component, self._mode)
            if pool is None:
                raise BadMessage("component")
            forward = decode(payload, pool)
        except BadMessage as error:
            self.ignored[str(error)] += 1
            return
        key = (forward.pool, forward.worker_id, forward.dp_rank)
        if key not in self._newest and len(self._newest) >= MOST_ENGINES:
            if self._clock() - self._forgot >= FORGET_EVERY:
                self._forget_silent()
            if len(self._newest) >= MOST_ENGINES:
                self.ignored["too_many"] += 1
                return
        self._newest[key] = (self._clock(), forward)

    def read(self) -> tuple[ForwardPass, ...] | InputUnavailable:
        """The newest message of every engine that is not silent, or why there is none."""
        heard = bool(self._newest)
        self._forget_silent()
        if self._newest:
            return tuple(forward for _, forward in sorted(self._newest.values(), key=lambda each: _order(each[1])))
        if heard:
            return InputUnavailable(
                why=Missing.STALE, message=f"no engine has reported its iterations for {FRESH_FOR:g} s"
            )
        reasons = ", ".join(f"{count} of {reason}" for reason, count in self.ignored.items())
        return InputUnavailable(
            why=Missing.NO_FORWARD_PASSES,
            message="no engine reports its iterations; does the runtime publish its events over NATS"
            + (f"? Ignored messages: {reasons}" if reasons else " (event plane nats)?"),
        )

    def _forget_silent(self) -> None:
        self._forgot = self._clock()
        before = self._forgot - FRESH_FOR
        self._newest = {key: each for key, each in self._newest.items() if each[0] >= before}


def _order(forward: ForwardPass) -> tuple[str, str, int]:
    return forward.pool.value, forward.worker_id, forward.dp_rank
