"""What the server and the registration need to know of certificates, from every source of them."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import Protocol

Clock = Callable[[], float]
"""Seconds since 1970: what certificates' dates are compared with."""

Changed = Callable[[], Awaitable[None]]
"""Writes the bundle to where the API server looks for it: webhook configurations and CRDs."""


class Unusable(ValueError):
    """A certificate, its key or its authorities cannot be used; the message says which, why, and what to do."""


class Certificates(Protocol):
    """The serving certificate and who vouches for it."""

    @property
    def context(self) -> ssl.SSLContext:
        """For the listening socket; what it serves is exchanged inside, without a restart."""

    @property
    def bundle(self) -> bytes:
        """PEM authorities to write into webhook configurations and CRDs; empty where cert-manager or the user writes them."""

    @property
    def inject_from(self) -> str:
        """`namespace/certificate` for cert-manager's cainjector; empty where we write the bundle."""

    @property
    def expires(self) -> float:
        """When the certificate that is served ends, in seconds since 1970."""

    async def keep(self, changed: Changed) -> None:
        """Runs until cancelled: renews; awaits `changed` first of all and whenever the bundle is another one."""
