"""Modes manual and cert-manager: the files of a folder, read again when they change."""

from dataclasses import dataclass, replace
from pathlib import Path

import structlog
from cryptography import x509

from dynamo_admission.tls import files, pki
from dynamo_admission.tls.certificates import Certificates, Clock
from dynamo_admission.tls.clients import ClientAuthorities
from dynamo_admission.tls.pki import Unusable
from dynamo_admission.tls.timing import Timing

log = structlog.get_logger("dynamo.admission")


@dataclass(frozen=True, slots=True)
class ServedCertificates:
    """The served certificates, since when, and the announced CAs."""

    given: files.CertificateFiles
    authorities: tuple[x509.Certificate, ...]
    since: float

    @property
    def bundle(self) -> bytes:
        """The CAs, PEM."""
        return pki.pem_of(*self.authorities)


class FileCertificates(Certificates):
    """The certificates of the files. Raises Unusable if they cannot be served at the start; later unusable files are
    ignored.

    With `inject_from` (`namespace/certificate`) cert-manager's cainjector announces the CAs instead of this service.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        clock: Clock,
        timing: Timing,
        *,
        inject_from: str = "",
        clients: ClientAuthorities | None = None,
    ) -> None:
        super().__init__(clock, timing, clients)
        self.inject_from = inject_from
        self._folder = folder
        self._name = pki.normal(name)
        self._trouble = ""
        first = self._read()
        self._shown = ServedCertificates(first, first.authorities, clock())
        self._serve(first.chain, first.key)

    @property
    def bundle(self) -> bytes:
        """The CAs of the serving certificate, and for some time those of the previous one."""
        return self._shown.bundle

    async def refresh(self) -> None:
        """Load the files; incomplete or unusable files change nothing."""
        self._shown = self._next_certificates()
        self._serve(self._shown.given.chain, self._shown.given.key)

    def _next_certificates(self) -> ServedCertificates:
        shown = self._shown
        try:
            given = self._read()
        except Unusable as error:
            if str(error) != self._trouble:
                log.warning("cannot use the new certificate files", error=str(error), ends=self.expires)
            self._trouble = str(error)
            return shown
        self._trouble = ""
        return succeed(shown, given, self._clock(), self._timing, settled=self._settled(shown.bundle))

    def _read(self) -> files.CertificateFiles:
        return files.read(self._folder, self._name, self._clock(), announced=not self.inject_from)


def succeed(
    shown: ServedCertificates, given: files.CertificateFiles, now: float, timing: Timing, *, settled: bool
) -> ServedCertificates:
    """The next state after the files were read and contain `given`, which is not served before the API server can verify
    it. Pure.

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


def _verifiable(shown: ServedCertificates, given: files.CertificateFiles, now: float, *, settled: bool) -> bool:
    """Whether it can be served now."""
    if not given.authorities or pki.trusted(given.chain, shown.given.authorities):
        return True
    # Every client refuses an expired certificate: no reason to wait.
    return settled or now > pki.ends(shown.given.chain[0])


def _joined(old: tuple[x509.Certificate, ...], new: tuple[x509.Certificate, ...]) -> tuple[x509.Certificate, ...]:
    return (*old, *(each for each in new if each not in old))
