"""Addresses and TLS of connections to servers."""

from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from dynamo_shared.runtime.settings.base import Section


def _without_userinfo(address: str) -> str:
    if "@" in urlsplit(address if "://" in address else f"//{address}").netloc:
        raise ValueError("must not have a user name or password in the address; use the settings for them")
    return address


#: Description of the settings of an address to listen on.
LISTENS_ON = "Address to listen on. `0.0.0.0` is all IPv4 addresses, `::` all IPv6 addresses."

Address = Annotated[str, AfterValidator(_without_userinfo)]


class Tls(Section):
    """TLS of a connection."""

    ca_file: Path | None = Field(None, description="Trusted CA certificates, PEM file; unset: those of the system.")
    cert_file: Path | None = Field(None, description="Client certificate, PEM file.")
    key_file: Path | None = Field(None, description="Key of the client certificate, PEM file.")

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("certFile and keyFile must be set together")
        return self
