"""When a plan that the scaler did not carry out is asked for again: not at each sample, and graphs not all at once. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from dynamo_shared.aio.backoff import Backoff, Randomness
from dynamo_shared.newest import Newest

from dynamo_planner.core.decision import Decision
from dynamo_planner.core.observing import Observation, Pool

FIRST, LONGEST = 20.0, 240.0
"""Seconds between the first two commands for the same plan, and between later ones at most."""
OF_LIFETIME = 0.5
"""The scaler keeps what it holds, or a budget refuses, for a life time: it is asked again within this part of that."""
REMEMBERED = 16
"""Plans that wait for their time: predictions move between a few numbers."""
#: Reasons of such answers.
_WAITS = frozenset({"Held", "Advisory"})

Plan: TypeAlias = frozenset[tuple[Pool, int]]


class Acted(NamedTuple):
    """What the scaler did with a command."""

    command: str
    """its id"""
    answer: str
    done: bool
    answered: bool = True
    """false where the scaler could not be asked, or says nothing: it may still do it"""
    reason: str = ""
    """the answer's word for programs"""
    unsent: bool = False
    """whether nothing refused it, and likely nothing was sent: the next tick may send it"""
    repeated: bool = False
    """whether this is the answer of an earlier tick: the same plan was not asked for again"""

    @property
    def waits(self) -> bool:
        """Whether the scaler took the command, and has changed nothing yet."""
        return self.done and self.reason in _WAITS

    @property
    def may_come(self) -> bool:
        """Whether the scaler may still do it."""
        return self.waits or not self.answered


@dataclass(slots=True)
class _Waiting:
    backoff: Backoff
    until: float
    answer: Acted


class Pace:
    """Remembers the plans that the scaler refused or holds, and what it said. `clock` gives seconds that only grow."""

    def __init__(
        self, clock: Callable[[], float], longest: float = LONGEST, randomness: Randomness | None = None
    ) -> None:
        self._clock, self._longest, self._randomness = clock, longest, randomness
        self._waiting: Newest[Plan, _Waiting] = Newest(REMEMBERED)
        self._ways: Mapping[Pool, bool] = {}
        """of what was asked for last: whether pools grow"""
        self._last: Plan | None = None

    def answer(self, decision: Decision, observation: Observation) -> Acted | None:
        """What the scaler said to this plan, until it is to be asked for again; None: ask now."""
        ways = _ways(decision, observation)
        if any(self._ways.get(pool, grows) is not grows for pool, grows in ways.items()):
            # The scaler remembers the newest plan, and must not carry out the opposite of this one.
            self._waiting.clear()
        self._ways = ways
        self._last = frozenset(decision.replicas.items())
        return self.last()

    def last(self) -> Acted | None:
        """What the scaler said to the newest plan, as long as that is not to be asked for again."""
        waiting = self._waiting.get(self._last) if self._last is not None else None
        if waiting is None or waiting.until <= self._clock():
            return None
        return waiting.answer._replace(repeated=True)

    def answered(self, decision: Decision, acted: Acted) -> None:
        """The scaler's answer to a plan."""
        plan = frozenset(decision.replicas.items())
        if acted.unsent:
            return
        if acted.done and not acted.waits:
            # Taken: what comes next is planned from there.
            self._waiting.clear()
            return
        # The scaler remembers the newest plan alone, refused or not: one that it held before has to be asked for again.
        for other in [each for each, waiting in self._waiting.items() if waiting.answer.may_come and each != plan]:
            del self._waiting[other]
        before = self._waiting.get(plan)
        backoff = before.backoff if before is not None else Backoff(FIRST, self._longest, self._randomness)
        self._waiting[plan] = _Waiting(backoff, self._clock() + backoff.next(), acted)

    def clear(self) -> None:
        """Nothing is asked for any more."""
        self._waiting.clear()
        self._ways, self._last = {}, None


def asked(observation: Observation, pool: Pool) -> int | None:
    """Replicas that are asked for already; None where that is not known."""
    counts = observation.workers.get(pool)
    return None if counts is None else (counts.ready if counts.expected is None else counts.expected)


def _ways(decision: Decision, observation: Observation) -> dict[Pool, bool]:
    """Whether pools grow, of those that are to change."""
    now = {pool: asked(observation, pool) for pool in decision.replicas}
    known = ((pool, replicas, now[pool]) for pool, replicas in decision.replicas.items())
    return {pool: before is None or replicas > before for pool, replicas, before in known if replicas != before}
