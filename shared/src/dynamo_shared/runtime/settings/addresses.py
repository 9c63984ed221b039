"""What every connection to a server needs: addresses, and TLS."""

from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from dynamo_shared.runtime.settings.base import Section


def _without_userinfo(address: str) -> str:
    if "@" in urlsplit(address if "://" in address else f"//{address}").netloc:
        raise ValueError("an address holds no user name or password: use the fields for them")
    return address


#: Description of an address of this host.
LISTENS_ON = "Address to listen on; `0.0.0.0` and `::`: all, of IPv4 and of IPv6."

Address = Annotated[str, AfterValidator(_without_userinfo)]


class Tls(Section):
    """TLS of a connection; without a CA file the system's authorities are trusted."""

    ca_file: Path | None = Field(None, description="Authorities to trust, PEM.")
    cert_file: Path | None = Field(None, description="Client certificate, PEM.")
    key_file: Path | None = Field(None, description="Its key, PEM.")

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("certFile and keyFile go together")
        return self
