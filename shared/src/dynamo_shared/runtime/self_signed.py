"""TLS without a given certificate: a self-signed one, created at the start and renewed before it expires.

It encrypts the traffic, but identifies no server: clients that verify the server need a certificate that they can
verify.
"""

import socket
import ssl
import time

from dynamo_shared.runtime.tls import ServingTls, context_of

#: Validity of a certificate, and the time after which a handshake creates the next one. Seconds.
VALID_FOR = 90 * 86400.0
RENEWED_AFTER = VALID_FOR / 2


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
