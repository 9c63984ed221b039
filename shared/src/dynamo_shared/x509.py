"""X.509 certificates that this project issues: ECDSA P-256, backdated, from a CA that may not sign other CAs.

It imports nothing of the project. cryptography needs some MiB of memory: a process that may not need it imports this
module inside functions.
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
"""Private key of a CA: this project creates the first type, and accepts both."""
ORGANIZATION = "Dynamo Platform"

#: How long before its creation a certificate becomes valid: clients refuse a certificate of the future, and clocks
#: differ between machines. Seconds.
BACKDATED = 3600.0
#: The limit of RFC 5280 (ub-common-name). Characters.
LONGEST_COMMON_NAME = 64


def make_authority(now: float, validity: float, name: str) -> tuple[x509.Certificate, bytes]:
    """A self-signed CA certificate and its key (PEM), valid for `validity` seconds from `now` (seconds since 1970)."""
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    # The name is unique: of two CAs with the same name, a verifier may try the wrong one.
    issuer = subject(f"{name}-{identifier.digest.hex()[:12]}")
    certificate = (
        builder(issuer, issuer, key.public_key(), now, now + validity)
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
    """A certificate of a server, a client or both, and its key (PEM). `signer` is the key of `authority`.

    `names` are DNS names and IP addresses (subject alternative names). The certificate is valid for `validity` seconds
    from `now` (seconds since 1970), but not longer than its CA.
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
    """The distinguished name with a common name and organizations."""
    named = (x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations)
    return x509.Name([*named, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _identifier(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """The key identifier of the CA's certificate: verifiers compare it, and there are several ways to compute it."""
    try:
        named = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())  # type: ignore[arg-type]
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(named)


def builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: float, end: float
) -> x509.CertificateBuilder:
    """A certificate without extensions, valid from BACKDATED before `now` until `end` (both in seconds since 1970)."""
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
    """The UTC time of `seconds` since 1970, in whole seconds, as certificates require."""
    return datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)


def general_name(name: str) -> x509.GeneralName:
    """An IP address or a DNS name."""
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def key_usage(*, signs: bool) -> x509.KeyUsage:
    """The key usage of a CA (`signs`: certificates and revocation lists) or of a leaf (digital signatures)."""
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
    """A private key as PEM (PKCS #8), not encrypted."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
