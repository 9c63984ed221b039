"""Certificates that this project issues: ECDSA P-256, from an earlier time on, by an authority that signs no other authority.

It imports nothing of the project. cryptography takes some MiB: a process that may do without imports this where it is needed.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from typing import TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

Signer: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
"""Key of an authority: this project makes the first kind, and takes both."""
ORGANIZATION = "Dynamo Platform"

#: Clocks of two machines differ, and a certificate from the future is refused: certificates begin earlier. Seconds.
BACKDATED = 3600.0
#: RFC 5280 allows 64 characters.
LONGEST_COMMON_NAME = 64


def make_authority(now: float, validity: float, name: str) -> tuple[x509.Certificate, bytes]:
    """A self-signed authority and its key (PEM), valid for so many seconds from `now` (since 1970)."""
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    # A name of its own: with two authorities of one name, a verifier may try the wrong one.
    own = subject(f"{name}-{identifier.digest.hex()[:12]}")
    certificate = (
        builder(own, own, key.public_key(), now, now + validity)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(signs=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate, key_pem(key)


def make_leaf(
    authority: x509.Certificate,
    signer: Signer,
    name: x509.Name,
    *,
    names: Sequence[str],
    now: float,
    validity: float,
    uses: Sequence[x509.ObjectIdentifier],
) -> tuple[x509.Certificate, bytes]:
    """A certificate of a server, a client or both, and its key (PEM). It ends no later than its authority, whose key `signer` is.

    `names` are the DNS names and IP addresses that it is valid for.
    """
    key, end = ec.generate_private_key(ec.SECP256R1()), authority.not_valid_after_utc.timestamp()
    certificate = (
        builder(name, authority.subject, key.public_key(), now, min(now + validity, end))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_identifier(authority), critical=False)
    )
    if names:
        alternative = x509.SubjectAlternativeName([general_name(each) for each in names])
        certificate = certificate.add_extension(alternative, critical=False)
    return certificate.sign(signer, hashes.SHA256()), key_pem(key)


def subject(common: str, organizations: Sequence[str] = (ORGANIZATION,)) -> x509.Name:
    """The name of a certificate."""
    named = (x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations)
    return x509.Name([*named, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _identifier(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """As the authority names its key: verifiers compare, and there is more than one way to make the name."""
    try:
        named = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())  # type: ignore[arg-type]
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(named)


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
