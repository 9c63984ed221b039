"""How long certificates live, and how long each step of a rotation waits."""

from dataclasses import dataclass
from typing import Self

_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Timing:
    """All in seconds.

    `settle` must outlast every stale write of a bundle: a replica that has not polled yet (`poll`) may write its
    registration once more (`announce`) before it polls; then the API server needs a moment to hear of it.
    """

    authority: float = 365 * _DAY
    serving: float = 90 * _DAY
    #: Between two reads of the Secret or the files. kubelet itself takes a minute or more for mounted files.
    poll: float = 30.0
    #: At most, for writing the bundle to webhook configurations and CRDs.
    announce: float = 60.0
    #: From a written bundle to the first use of what it newly vouches for.
    settle: float = 300.0
    #: How long the authority before is still trusted after its last certificate went out of service.
    overlap: float = _DAY

    @classmethod
    def of(cls, authority: float, serving: float) -> Self:
        """The usual steps, shorter where certificates live so short that the steps would not fit.

        A certificate is renewed when a third of its life is left, and that is to outlast the steps of its authority.
        """
        usual, life = cls(), min(authority, 2 * serving)
        return cls(
            authority=authority,
            serving=serving,
            poll=min(usual.poll, life / 120),
            announce=min(usual.announce, life / 30),
            settle=min(usual.settle, life / 12),
            overlap=min(usual.overlap, life / 12),
        )
