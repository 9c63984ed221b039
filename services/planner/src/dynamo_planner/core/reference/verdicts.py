"""What reactive scaling says of one pool."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dynamo_planner.core.reference.reasons import LoadReason

UNKNOWN = frozenset(
    {
        LoadReason.NO_FPM_DATA,
        LoadReason.INSUFFICIENT_DATA,
        LoadReason.WORKER_COUNT_MISMATCH,
        LoadReason.SCALING_IN_PROGRESS,
    }
)
"""Nothing is known that a decision could be made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Replicas that the pool should have, and why."""

    replicas: int
    reason: LoadReason
    message: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """what was computed on the way, by name"""

    @property
    def known(self) -> bool:
        """Whether it follows from observations; else nothing is to be done."""
        return self.reason not in UNKNOWN


def up(replicas: int, **figures: Any) -> Verdict:
    """One replica more."""
    return Verdict(replicas=replicas + 1, reason=LoadReason.SCALE_UP, figures=figures)


def down(replicas: int, **figures: Any) -> Verdict:
    """One replica less."""
    return Verdict(replicas=replicas - 1, reason=LoadReason.SCALE_DOWN, figures=figures)


def hold(replicas: int, reason: LoadReason, message: str = "", /, **figures: Any) -> Verdict:
    """As many as there are."""
    return Verdict(replicas=replicas, reason=reason, message=message, figures=figures)
