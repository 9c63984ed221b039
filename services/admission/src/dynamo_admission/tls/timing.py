"""The validity of certificates, and the duration of each step of a rotation."""

from dataclasses import dataclass
from typing import Self

_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Timing:
    """All values are in seconds.

    `settle` must be longer than every stale write of a bundle: a replica that has not polled yet (`poll`) may write its
    registration once more (`announce`) before it polls; then the API server needs a moment to receive it.
    """

    authority: float = 365 * _DAY
    serving: float = 90 * _DAY
    #: Between two reads of the Secret or the files. The kubelet itself takes a minute or more for mounted files.
    poll: float = 30.0
    #: Time limit for writing the bundle to webhook configurations and CRDs.
    announce: float = 60.0
    #: From a written bundle to the first use of a certificate of its new CA.
    settle: float = 300.0
    #: How long the previous CA stays trusted after its last certificate is no longer served.
    overlap: float = _DAY

    @classmethod
    def of(cls, authority: float, serving: float) -> Self:
        """The usual steps, shortened if certificates are valid for less time than the steps take.

        A certificate is renewed when a third of its lifetime is left, and that third must be longer than the steps of
        its CA.
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
