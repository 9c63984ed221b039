"""Modes manual and cert-manager: files of a folder, followed as they change."""

from __future__ import annotations

import ssl
from pathlib import Path

import structlog
from cryptography import x509
from dynamo_shared.runtime.tls import ServingTls, context_of

from dynamo_admission.tls import files, pki
from dynamo_admission.tls.announcing import Announced
from dynamo_admission.tls.certificates import Changed, Clock, Unusable
from dynamo_admission.tls.poll import poll
from dynamo_admission.tls.succession import Shown, succeed
from dynamo_admission.tls.timing import Timing

log = structlog.get_logger("dynamo.admission")


class GivenCertificates:
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
        client_authorities: str = "",
    ) -> None:
        self.inject_from = inject_from
        self._folder = folder
        self._name = pki.normal(name)
        self._clock = clock
        self._timing = timing
        self._announced = Announced(clock, timing)
        self._trouble = ""
        first = self._read()
        self._shown = Shown(first, first.authorities, clock())
        self._tls = ServingTls(context_of(pki.pem_of(*first.chain), first.key), client_authorities=client_authorities)
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
    def expires(self) -> float:
        """When the certificate that is served ends."""
        return pki.ends(self.serving)

    @property
    def serving(self) -> x509.Certificate:
        """The certificate that is served."""
        return self._shown.given.chain[0]

    async def keep(self, changed: Changed) -> None:
        """Read the files again and again, until cancelled."""
        await poll(lambda: self.round(changed), self._timing.poll, lambda: self.expires)

    async def round(self, changed: Changed) -> None:
        """Read the files once, and announce what changed. Raises what `changed` raises."""
        self.read()
        await self._announced.announce(self.bundle, changed)

    def read(self) -> None:
        """Take what the files hold; nothing changes while they are half written or cannot be used."""
        try:
            given = self._read()
        except Unusable as error:
            if str(error) != self._trouble:
                log.warning("new certificate files are not used", error=str(error), ends=self.expires)
            self._trouble = str(error)
            return
        self._trouble = ""
        before = self._shown
        self._shown = succeed(
            before, given, self._clock(), self._timing, settled=self._announced.settled(before.bundle)
        )
        if self._shown.given != before.given:
            self._tls.exchange(context_of(pki.pem_of(*given.chain), given.key))
            log.info("certificate in service", **pki.described(given.chain[0]))

    def _read(self) -> files.Given:
        return files.read(self._folder, self._name, self._clock(), announced=not self.inject_from)
