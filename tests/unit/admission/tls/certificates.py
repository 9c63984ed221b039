"""Parsed certificates for tests, and an in-memory store."""

import asyncio
import ssl
from pathlib import Path

from cryptography import x509
from dynamo_admission.tls.rotation import SecretState
from dynamo_admission.tls.secret import SecretStore, Stored
from dynamo_shared.kube import AlreadyExists, Conflict, Unavailable

#: 2026-01-01.
START = 1767225600.0
NAMES = ("dynamo-webhook.dynamo-system.svc", "127.0.0.1")


class MemoryStore(SecretStore):
    """The Secret as a value with a version; `failing` writes do not arrive, `unheard` ones arrive without an answer.

    `written` is when the API server says that it stored the last one.
    """

    def __init__(self) -> None:
        self.content: SecretState | None = None
        self.version = 0
        self.forced = False
        self.writes = 0
        self.written = 0.0
        self.failing = self.unheard = False
        self.away = False

    async def read(self) -> Stored | None:
        if self.away:
            raise Unavailable(0, "Unreachable", "no answer")
        if self.content is None:
            return None
        return Stored(self.content, str(self.version), self.written, self.forced)

    async def write(self, state: SecretState, stored: Stored | None) -> None:
        if self.failing or self.away:
            raise Unavailable(0, "Unreachable", "no answer")
        if stored is None and self.content is not None:
            raise AlreadyExists(409, "AlreadyExists", "it is there")
        if stored is not None and (self.content is None or stored.version != str(self.version)):
            raise Conflict(409, "Conflict", "it has changed")
        self.set(state)
        if self.unheard:
            raise Unavailable(0, "Unreachable", "no answer")

    def set(self, state: SecretState | None) -> None:
        self.content, self.forced = state, False
        self.version += 1
        self.writes += 1


def served_to(
    context: ssl.SSLContext, bundle: bytes, name: str, shown: tuple[Path, Path] | None = None
) -> x509.Certificate:
    """The certificate that a client with the bundle gets in a real in-memory handshake. Raises ssl.SSLError.

    `shown`: the client's own certificate and its key.
    """
    client_context = ssl.create_default_context(cadata=bundle.decode())
    if shown is not None:
        client_context.load_cert_chain(*shown)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server, server_hostname=name)
    waiting = [client, server]
    for _ in range(10):
        for side in tuple(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                pass
        if not waiting:
            break
    certificate = client.getpeercert(binary_form=True)
    assert certificate is not None
    return x509.load_der_x509_certificate(certificate)


async def nothing() -> None:
    """An announcement that tests ignore."""
    await asyncio.sleep(0)
