"""When changed certificates of the user are served, as a pure function: not before the API server can verify them."""

from dataclasses import dataclass, replace

from cryptography import x509

from dynamo_admission.tls import pki
from dynamo_admission.tls.files import CertificateFiles
from dynamo_admission.tls.timing import Timing


@dataclass(frozen=True, slots=True)
class ServedCertificates:
    """The served certificates, since when, and the announced CAs."""

    given: CertificateFiles
    authorities: tuple[x509.Certificate, ...]
    since: float

    @property
    def bundle(self) -> bytes:
        """The CAs, PEM."""
        return pki.pem_of(*self.authorities)


def succeed(
    shown: ServedCertificates, given: CertificateFiles, now: float, timing: Timing, *, settled: bool
) -> ServedCertificates:
    """The next state after the files were read and contain `given`.

    The CA of the previous certificate stays announced for `timing.overlap`: other replicas may not have read the new
    files. `settled`: the present bundle has had the time to reach the API server.
    """
    if given != shown.given:
        both = _joined(shown.authorities, given.authorities)
        if not _verifiable(shown, given, now, settled=settled and both == shown.authorities):
            return replace(shown, authorities=both)
        return ServedCertificates(given, both, now)
    if now >= shown.since + timing.overlap:
        return replace(shown, authorities=given.authorities)
    return shown


def _verifiable(shown: ServedCertificates, given: CertificateFiles, now: float, *, settled: bool) -> bool:
    """Whether it can be served now."""
    if not given.authorities or pki.trusted(given.chain, shown.given.authorities):
        return True
    # Every client refuses an expired certificate: no reason to wait.
    return settled or now > pki.ends(shown.given.chain[0])


def _joined(old: tuple[x509.Certificate, ...], new: tuple[x509.Certificate, ...]) -> tuple[x509.Certificate, ...]:
    return (*old, *(each for each in new if each not in old))
