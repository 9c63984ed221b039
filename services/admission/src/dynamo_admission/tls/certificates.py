"""The certificates' interface for the server and the registration, and the loop that keeps each source up to date."""

import asyncio
import datetime
import ssl
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

import structlog
from cryptography import x509
from dynamo_shared.aio import Backoff, spread
from dynamo_shared.runtime.tls import ServingTls, context_of

from dynamo_admission.tls import pki
from dynamo_admission.tls.clients import ClientAuthorities
from dynamo_admission.tls.timing import Timing

Clock = Callable[[], float]
"""Seconds since 1970: what certificates' dates are compared with."""

Changed = Callable[[], Awaitable[None]]
"""Writes the bundle to where the API server looks for it: webhook configurations and CRDs."""

#: Seconds before the first retry; each further retry waits twice as long.
_FIRST_RETRY = 1.0

log = structlog.get_logger("dynamo.admission")


class Certificates(ABC):
    """The serving certificate and its CAs."""

    inject_from = ""
    """`namespace/certificate` for cert-manager's cainjector; empty where we write the bundle."""

    def __init__(self, clock: Clock, timing: Timing, clients: ClientAuthorities | None) -> None:
        self._clock = clock
        self._timing = timing
        self._clients = clients or ClientAuthorities()
        self._chain: tuple[x509.Certificate, ...] = ()
        self._tls: ServingTls | None = None
        self._announced: bytes | None = None
        self._since = 0.0

    @property
    def context(self) -> ssl.SSLContext:
        """The TLS context of the listening socket; its certificate is replaced without a restart."""
        if self._tls is None:
            raise AssertionError("refresh first")
        return self._tls.context

    @property
    @abstractmethod
    def bundle(self) -> bytes:
        """CAs (PEM) to write into webhook configurations and CRDs; empty if cert-manager or the user writes them."""

    @property
    def serving(self) -> x509.Certificate:
        """The certificate that is served."""
        return self._chain[0]

    @property
    def expires(self) -> float:
        """When the serving certificate expires, in seconds since 1970."""
        return pki.ends(self.serving)

    @abstractmethod
    async def refresh(self) -> None:
        """Load the current content of the source."""

    async def keep(self, changed: Changed) -> None:
        """Renew until cancelled; await `changed` at the start and after each change of the bundle.

        Failures are logged, with the expiry of the serving certificate.
        """
        backoff = Backoff(_FIRST_RETRY, self._timing.poll)
        while True:
            pause = self._timing.poll
            try:
                await self.round(changed)
                backoff.reset()
            except Exception as error:  # also errors of `changed`, which belong to its owner
                pause = backoff.next()
                until = datetime.datetime.fromtimestamp(self.expires, datetime.UTC).isoformat()
                log.warning("cannot check the certificates", error=f"{type(error).__name__}: {error}", ends=until)
            # Jitter, because replicas may start at the same time.
            await asyncio.sleep(spread(pause, least=0.8))

    async def round(self, changed: Changed) -> None:
        """Refresh once, and await `changed` if the bundle has changed.

        Raises the errors of both, and TimeoutError if `changed` takes too long.
        """
        await self.refresh()
        bundle = self.bundle
        if bundle == self._announced:
            return
        # Unknown until `changed` succeeds: a failed call may have written a part.
        self._announced = None
        async with asyncio.timeout(self._timing.announce):
            await changed()
        self._announced, self._since = bundle, self._clock()

    def _serve(self, chain: tuple[x509.Certificate, ...], key: bytes) -> None:
        """Serve this chain, leaf first, from the next handshake on, and trust the current client CAs of the file."""
        renewed = self._clients.renew()
        if chain == self._chain and not renewed:
            return
        current = context_of(pki.pem_of(*chain), key)
        if self._tls is None:
            self._tls = ServingTls(current, client_authorities=self._clients.pem)
        else:
            self._tls.exchange(current, self._clients.pem)
        if chain != self._chain:
            self._chain = chain
            log.info("certificate in service", **pki.described(chain[0]))

    def _settled(self, bundle: bytes) -> bool:
        """Whether the API server certainly knows exactly this bundle."""
        return bundle == self._announced and self._clock() >= self._since + self._timing.settle
