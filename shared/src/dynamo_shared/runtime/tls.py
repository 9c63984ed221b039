"""TLS of listening sockets whose certificate changes while they listen.

A listening socket keeps the context with which it was opened. So that context only redirects each handshake to the
context with the current certificate. If another certificate were loaded into the first context instead, the old one
would stay wherever the kind of key differs.
"""

import os
import socket
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# Ciphers for TLS 1.2: forward secrecy and authenticated encryption. TLS 1.3 has no others.
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
#: Validity of a self-signed certificate, and the time after which a handshake creates the next one. Seconds.
VALID_FOR = 90 * 86400.0
RENEWED_AFTER = VALID_FOR / 2


class ServingTls:
    """One context for a listening socket; `exchange` changes its content from the next handshake on.

    `before_handshake` is called first in each handshake and may call `exchange`; it must be quick and must not raise.
    With `client_authorities` (PEM) clients are asked for a certificate: a certificate that these CAs did not sign ends
    the handshake, but a missing one does not. ssl.SSLError if the CAs cannot be read.
    """

    def __init__(
        self,
        current: ssl.SSLContext,
        before_handshake: Callable[[], None] = lambda: None,
        *,
        client_authorities: str = "",
    ) -> None:
        self._before_handshake = before_handshake
        self._client_authorities = client_authorities
        self.context = _bare()
        self.context.sni_callback = self._begin
        # The first context decides whether a client is asked, the handshake's context decides whom to trust.
        self._ask_clients(self.context)
        self.exchange(current)

    def exchange(self, current: ssl.SSLContext, client_authorities: str = "") -> None:
        """Serve this context's certificate, and trust clients of other CAs if these are given.

        Open connections keep what they began with.
        """
        self._client_authorities = client_authorities or self._client_authorities
        self._ask_clients(current)
        self._current = current

    def _ask_clients(self, context: ssl.SSLContext) -> None:
        if self._client_authorities:
            context.load_verify_locations(cadata=self._client_authorities)
            context.verify_mode = ssl.CERT_OPTIONAL

    def _begin(self, connection: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        # It is also called for clients that name no server (they connect to an IP address).
        self._before_handshake()
        connection.context = self._current


def context_of_files(certificate: Path, key: Path) -> ssl.SSLContext:
    """A context with the chain and the key from two files. OSError (also ssl.SSLError) if they cannot be used."""
    context = _bare()
    context.load_cert_chain(certificate, key, password=_no_password)
    return context


def context_of(chain: bytes, key: bytes) -> ssl.SSLContext:
    """A context with a chain and its key (both PEM). ssl.SSLError if they do not belong together."""
    context = _bare()
    with _readable(chain + b"\n" + key) as path:
        context.load_cert_chain(path, password=_no_password)
    return context


def _bare() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    return context


@contextmanager
def _readable(content: bytes) -> Iterator[str]:
    """A path that only this process can read: OpenSSL reads keys only from files. In memory if the system can."""
    if not hasattr(os, "memfd_create"):
        with tempfile.TemporaryDirectory(prefix="dynamo-tls-") as folder:  # 0700
            path = Path(folder) / "pair.pem"
            path.touch(mode=0o600)
            path.write_bytes(content)
            yield str(path)
        return
    number = os.memfd_create("dynamo-tls", os.MFD_CLOEXEC)
    with os.fdopen(number, "wb") as file:
        file.write(content)
        file.flush()
        yield f"/proc/self/fd/{number}"


def _no_password() -> str:
    # Otherwise OpenSSL would ask on the terminal.
    raise ssl.SSLError("the key is encrypted; use a key without a password")


def self_signed_tls() -> ssl.SSLContext:
    """TLS with a self-signed certificate for the host's name."""
    made = time.time()

    def renew() -> None:
        nonlocal made
        if abs(time.time() - made) >= RENEWED_AFTER:
            made = time.time()
            tls.exchange(context_of(*_pair(made)))

    tls = ServingTls(context_of(*_pair(made)), renew)
    return tls.context


def _pair(now: float) -> tuple[bytes, bytes]:
    # Imported here: it takes some MiB, which a process with a given certificate does not need.
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID  # noqa: PLC0415

    from dynamo_shared.x509 import LONGEST_COMMON_NAME, builder, key_pem  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    host = socket.gethostname()[:LONGEST_COMMON_NAME] or "dynamo-platform"
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    certificate = (
        builder(name, name, key.public_key(), now, now + VALID_FOR)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), key_pem(key)
