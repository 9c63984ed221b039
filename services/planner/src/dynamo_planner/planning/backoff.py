"""When an unexecuted plan is requested again: not at each sample, and not for all graphs at once. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from dynamo_shared.aio.backoff import Backoff, Randomness
from dynamo_shared.lru import LruCache

from dynamo_planner.core.decision import Decision
from dynamo_planner.core.observation import Observation, Pool

FIRST, LONGEST = 20.0, 240.0
"""Seconds between the first two commands for the same plan, and the maximum between later ones."""
OF_LIFETIME = 0.5
"""The scaler keeps a plan that is held, or refused by a budget, for a lifetime: it is requested again within this part
of it.
"""
REMEMBERED = 16
"""Waiting plans that are kept: predictions alternate between a few numbers."""
#: Reasons of answers that mean that the command waits.
_WAITS = frozenset({"Held", "Advisory"})

Plan: TypeAlias = frozenset[tuple[Pool, int]]


class Acted(NamedTuple):
    """The scaler's response to a command."""

    command: str
    """its id"""
    answer: str
    done: bool
    answered: bool = True
    """false if the scaler could not be asked or did not answer: it may still execute the command"""
    reason: str = ""
    """the answer's reason, for programs"""
    unsent: bool = False
    """whether nothing refused the command and it was probably not sent: the next tick may send it"""
    repeated: bool = False
    """whether this is the answer of an earlier tick, because the same plan was not requested again"""

    @property
    def waits(self) -> bool:
        """Whether the scaler accepted the command but has changed nothing yet."""
        return self.reason in _WAITS

    @property
    def may_come(self) -> bool:
        """Whether the scaler may still execute the command."""
        return self.waits or not self.answered


@dataclass(slots=True)
class _Waiting:
    backoff: Backoff
    until: float
    answer: Acted


class PlanBackoff:
    """Keeps the plans that the scaler refused or holds, with its answers. `clock` returns monotonic seconds."""

    def __init__(
        self, clock: Callable[[], float], longest: float = LONGEST, randomness: Randomness | None = None
    ) -> None:
        self._clock, self._longest, self._randomness = clock, longest, randomness
        self._waiting: LruCache[Plan, _Waiting] = LruCache(REMEMBERED)
        self._directions: Mapping[Pool, bool] = {}
        """for the last request: whether each pool grows"""
        self._last: Plan | None = None

    def answer(self, decision: Decision, observation: Observation) -> Acted | None:
        """The scaler's earlier answer to this plan, until the plan must be requested again; None: request it now."""
        ways = _directions(decision, observation)
        if any(self._directions.get(pool, grows) is not grows for pool, grows in ways.items()):
            # The scaler keeps the newest plan, and must not execute the opposite of this one.
            self._waiting.clear()
        self._directions = ways
        self._last = frozenset(decision.replicas.items())
        return self.last()

    def last(self) -> Acted | None:
        """The scaler's answer to the newest plan, until that plan must be requested again."""
        waiting = self._waiting.get(self._last) if self._last is not None else None
        if waiting is None or waiting.until <= self._clock():
            return None
        return waiting.answer._replace(repeated=True)

    def answered(self, decision: Decision, acted: Acted) -> None:
        """Record the scaler's answer to a plan."""
        plan = frozenset(decision.replicas.items())
        if acted.unsent:
            return
        if acted.done and not acted.waits:
            # Executed: the next plans start from there.
            self._waiting.clear()
            return
        # The scaler keeps only the newest plan, refused or not: a plan that it held before must be requested again.
        for other in [each for each, waiting in self._waiting.items() if waiting.answer.may_come and each != plan]:
            del self._waiting[other]
        before = self._waiting.get(plan)
        backoff = before.backoff if before is not None else Backoff(FIRST, self._longest, self._randomness)
        self._waiting[plan] = _Waiting(backoff, self._clock() + backoff.next(), acted)

    def clear(self) -> None:
        """Forget all requests."""
        self._waiting.clear()
        self._directions, self._last = {}, None


def asked(observation: Observation, pool: Pool) -> int | None:
    """Replicas already requested; None if unknown."""
    counts = observation.workers.get(pool)
    return None if counts is None else (counts.ready if counts.expected is None else counts.expected)


def _directions(decision: Decision, observation: Observation) -> dict[Pool, bool]:
    """For each pool that must change: whether it grows."""
    now = {pool: asked(observation, pool) for pool in decision.replicas}
    known = ((pool, replicas, now[pool]) for pool, replicas in decision.replicas.items())
    return {pool: before is None or replicas > before for pool, replicas, before in known if replicas != before}
