"""Modes manual and cert-manager: files of a folder, followed as they change."""

from pathlib import Path

import structlog

from dynamo_admission.tls import files, pki
from dynamo_admission.tls.certificates import Certificates, Clock
from dynamo_admission.tls.clients import ClientAuthorities
from dynamo_admission.tls.pki import Unusable
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
        super().__init__(clock, timing, clients)
        self.inject_from = inject_from
        self._folder = folder
        self._name = pki.normal(name)
        self._trouble = ""
        first = self._read()
        self._shown = Shown(first, first.authorities, clock())
        self._serve(first.chain, first.key)

    @property
    def bundle(self) -> bytes:
        """The authorities of what is served, and for a while those of what was."""
        return self._shown.bundle

    async def refresh(self) -> None:
        """Take what the files hold; nothing changes while they are half written or cannot be used."""
        self._shown = self._succession()
        self._serve(self._shown.given.chain, self._shown.given.key)

    def _succession(self) -> Shown:
        shown = self._shown
        try:
            given = self._read()
        except Unusable as error:
            if str(error) != self._trouble:
                log.warning("new certificate files are not used", error=str(error), ends=self.expires)
            self._trouble = str(error)
            return shown
        self._trouble = ""
        return succeed(shown, given, self._clock(), self._timing, settled=self._settled(shown.bundle))

    def _read(self) -> files.Given:
        return files.read(self._folder, self._name, self._clock(), announced=not self.inject_from)
