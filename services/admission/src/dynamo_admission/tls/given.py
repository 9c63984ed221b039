"""Modes manual and cert-manager: files of a folder, followed as they change."""

import ssl
from pathlib import Path

import structlog
from cryptography import x509
from dynamo_shared.runtime.tls import ServingTls, context_of

from dynamo_admission.tls import files, pki
from dynamo_admission.tls.certificates import Certificates, Clock, Unusable
from dynamo_admission.tls.clients import ClientAuthorities
from dynamo_admission.tls.succession import Shown, succeed
from dynamo_admission.tls.timing import Timing

log = structlog.get_logger("dynamo.admission")


class GivenCertificates(Certificates):
    """What the files say. Raises Unusable where they cannot be served; later such files are passed over.

    With `inject_from` (`namespace/certificate`) cert-manager's cainjector announces the authorities, and not we.
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
        super().__init__(clock, timing)
        self.inject_from = inject_from
        self._folder = folder
        self._name = pki.normal(name)
        self._trouble = ""
        first = self._read()
        self._shown = Shown(first, first.authorities, clock())
        self._clients = clients or ClientAuthorities()
        self._tls = ServingTls(_context(first), client_authorities=self._clients.pem)
        log.info("certificate in service", **pki.described(first.chain[0]))

    @property
    def context(self) -> ssl.SSLContext:
        """For the listening socket."""
        return self._tls.context

    @property
    def bundle(self) -> bytes:
        """The authorities of what is served, and for a while those of what was."""
        return self._shown.bundle

    @property
    def serving(self) -> x509.Certificate:
        """The certificate that is served."""
        return self._shown.given.chain[0]

    async def refresh(self) -> None:
        """Take what the files hold; nothing changes while they are half written or cannot be used."""
        if self._clients.renew():
            self._tls.exchange(_context(self._shown.given), self._clients.pem)
        try:
            given = self._read()
        except Unusable as error:
            if str(error) != self._trouble:
                log.warning("new certificate files are not used", error=str(error), ends=self.expires)
            self._trouble = str(error)
            return
        self._trouble = ""
        before = self._shown
        self._shown = succeed(before, given, self._clock(), self._timing, settled=self._settled(before.bundle))
        if self._shown.given != before.given:
            self._tls.exchange(_context(given))
            log.info("certificate in service", **pki.described(given.chain[0]))

    def _read(self) -> files.Given:
        return files.read(self._folder, self._name, self._clock(), announced=not self.inject_from)


def _context(given: files.Given) -> ssl.SSLContext:
    return context_of(pki.pem_of(*given.chain), given.key)
