"""Modes manual and cert-manager: the files of a folder, read again when they change."""

from pathlib import Path

import structlog

from dynamo_admission.tls import files, pki
from dynamo_admission.tls.certificates import Certificates, Clock
from dynamo_admission.tls.clients import ClientAuthorities
from dynamo_admission.tls.pki import Unusable
from dynamo_admission.tls.succession import ServedCertificates, succeed
from dynamo_admission.tls.timing import Timing

log = structlog.get_logger("dynamo.admission")


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
