"""When a Kubernetes Lease may be taken: a pure decision from successive readings.

Times that others write do not count. What counts is how long, by this replica's own clock, the Lease has not changed.
Its holder renews it several times within its duration, so a Lease that has not changed for that long no longer has a
holder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

#: The longest duration that is accepted from a Lease, in seconds: a longer one is a mistake, and would block a service.
LONGEST_DURATION = 60.0
#: Characters of each field that are compared.
_KEPT = 256


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The relevant fields of a Lease: holder, duration after a renewal (seconds), and the fields that renewals change."""

    holder: str
    duration: float
    renewals: tuple[str, ...]

    @classmethod
    def of(cls, lease: Mapping[str, Any]) -> Self:
        """The record of a Lease object. Its fields may have any content; invalid content counts as missing."""
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
    """A replica that may take a Lease. `ttl` is its own duration, in seconds; all times are of one clock."""

    def __init__(self, replica: str, ttl: float) -> None:
        self._replica = replica
        self._ttl = ttl
        self._record: LeaseRecord | None = None
        self._since = 0.0

    @property
    def holder(self) -> str:
        """The holder in the last reading, or ""."""
        return self._record.holder if self._record is not None else ""

    def may_take(self, record: LeaseRecord | None, now: float) -> bool:
        """Process a reading (None: there is no Lease). Returns whether this replica may write the Lease now."""
        if record != self._record:
            self._record, self._since = record, now
        if record is None or record.holder in ("", self._replica):
            return True
        return now - self._since >= max(self._ttl, record.duration)
