"""What all certificates that this project issues have in common: ECDSA P-256, key usage, names, and when they begin.

It imports nothing of the project. cryptography takes some MiB: a process that may do without imports this where it is needed.
"""

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

#: Clocks of two machines differ, and a certificate from the future is refused: certificates begin earlier. Seconds.
BACKDATED = 3600.0
#: RFC 5280 allows 64 characters.
LONGEST_COMMON_NAME = 64


def builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: float, end: float
) -> x509.CertificateBuilder:
    """A certificate of a key, without extensions. `now` and `end` (its last second) are seconds since 1970."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(date(now - BACKDATED))
        .not_valid_after(date(end))
    )


def date(seconds: float) -> datetime.datetime:
    """A time since 1970 as certificates have it, in whole seconds."""
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)


def general_name(name: str) -> x509.GeneralName:
    """An IP address or a DNS name."""
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def key_usage(*, signs: bool) -> x509.KeyUsage:
    """That of an authority, which signs certificates, or of a leaf."""
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key as PEM, without a password."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
