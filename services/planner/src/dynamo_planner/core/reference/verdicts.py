"""The verdict of reactive scaling on one pool."""

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
"""Reasons that mean that there is not enough data for a decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The desired replicas of the pool, and why."""

    replicas: int
    reason: LoadReason
    message: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """intermediate results, by name"""

    @property
    def known(self) -> bool:
        """Whether it follows from observations; otherwise, nothing must be done."""
        return self.reason not in UNKNOWN


def up(replicas: int, **figures: Any) -> Verdict:
    """Add one replica."""
    return Verdict(replicas=replicas + 1, reason=LoadReason.SCALE_UP, figures=figures)


def down(replicas: int, **figures: Any) -> Verdict:
    """Remove one replica."""
    return Verdict(replicas=replicas - 1, reason=LoadReason.SCALE_DOWN, figures=figures)


def hold(replicas: int, reason: LoadReason, message: str = "", /, **figures: Any) -> Verdict:
    """Keep the current replicas."""
    return Verdict(replicas=replicas, reason=reason, message=message, figures=figures)
