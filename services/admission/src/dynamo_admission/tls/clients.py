"""The CAs of client certificates: read from a file, and read again when it changes."""

import ssl
from pathlib import Path

import structlog

from dynamo_admission.tls.pki import Unusable

log = structlog.get_logger("dynamo.admission")


class ClientAuthorities:
    """The CAs of a file (PEM). Without a file there are no CAs, and clients need no certificate. Raises Unusable."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._trouble = ""
        self.pem = _read(file) if file is not None else ""

    def renew(self) -> bool:
        """Read the file again, and return whether it has changed. If the file is unusable, the last CAs stay in use."""
        if self._file is None:
            return False
        before = self.pem
        try:
            self.pem, self._trouble = _read(self._file), ""
        except Unusable as error:
            if str(error) != self._trouble:
                log.warning("cannot use the new client authorities", error=str(error))
            self._trouble = str(error)
        return self.pem != before


def _read(file: Path) -> str:
    try:
        pem = file.read_text("ascii")
        ssl.create_default_context(cadata=pem)
    except (OSError, ValueError) as error:
        raise Unusable(f"platform.admission.clientCaFile {file} cannot be used: {error}") from error
    return pem
