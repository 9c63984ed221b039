"""When a Lease of Kubernetes may be taken: a pure decision, one reading after the other.

Times written by others do not count: what counts is since when, on our own clock, the Lease says the same. Its holder
renews it several times within its duration, so that one which has not changed for that long has no holder any more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

#: A duration that a Lease may ask others to wait, in seconds: more is a mistake, and would keep a service from working.
LONGEST_DURATION = 60.0
#: Characters of each field that are compared.
_KEPT = 256


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What of a Lease counts: who holds it, for how long after each renewal (seconds), and what changes with these."""

    holder: str
    duration: float
    renewals: tuple[str, ...]

    @classmethod
    def of(cls, lease: Mapping[str, Any]) -> Self:
        """Of an object as Kubernetes has it. Anything may stand there; what cannot be is taken for nothing."""
        spec = lease.get("spec")
        spec = spec if isinstance(spec, Mapping) else {}
        holder, duration = spec.get("holderIdentity"), spec.get("leaseDurationSeconds")
        renewals = tuple(str(spec.get(name))[:_KEPT] for name in ("acquireTime", "renewTime", "leaseTransitions"))
        return cls(
            holder=holder if isinstance(holder, str) else "",
            duration=min(LONGEST_DURATION, max(0.0, float(duration))) if type(duration) is int else 0.0,
            renewals=renewals,
        )


class LeaseCandidate:
    """One replica that would hold a Lease. `ttl` is its own duration, in seconds; times are those of one clock."""

    def __init__(self, replica: str, ttl: float) -> None:
        self._replica = replica
        self._ttl = ttl
        self._record: LeaseRecord | None = None
        self._since = 0.0

    @property
    def holder(self) -> str:
        """The holder as last read, empty without one."""
        return self._record.holder if self._record is not None else ""

    def may_take(self, record: LeaseRecord | None, now: float) -> bool:
        """Take in a reading (None: there is no Lease); whether it may be written now, as its first holder or the next."""
        if record != self._record:
            self._record, self._since = record, now
        if record is None or record.holder in ("", self._replica):
            return True
        return now - self._since >= max(self._ttl, record.duration)
