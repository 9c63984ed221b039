"""X.509: reads CAs and serving certificates, and checks trust."""

import ipaddress
from collections.abc import Iterable, Sequence

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID
from dynamo_shared.x509 import BACKDATED, LONGEST_COMMON_NAME, Signer, make_leaf, subject


class Unusable(ValueError):
    """A certificate, its key or its CAs are unusable; the message says which, why, and what to do."""


def make_serving(
    authority: x509.Certificate, authority_key: bytes, names: Sequence[str], now: float, validity: float
) -> tuple[x509.Certificate, bytes]:
    """A serving certificate for DNS names and IP addresses, and its key (PEM). It expires no later than its CA."""
    common = next((name for name in names if len(name) <= LONGEST_COMMON_NAME), "dynamo-admission")
    return make_leaf(
        authority,
        signing_key_of(authority_key, "the authority's key"),
        subject(common),
        names=names,
        now=now,
        validity=validity,
        uses=[ExtendedKeyUsageOID.SERVER_AUTH],
    )


def certificates_of(pem: bytes, what: str) -> tuple[x509.Certificate, ...]:
    """All certificates of a PEM text, in its order. Unusable if the text has no certificate or a broken one."""
    try:
        return tuple(x509.load_pem_x509_certificates(pem))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise Unusable(f"{what} has no certificate in PEM format: {error}") from error


def key_of(pem: bytes, what: str) -> PrivateKeyTypes:
    """The private key of a PEM text. Unusable if it is missing, broken or encrypted; the message never quotes it."""
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except TypeError as error:
        raise Unusable(f"{what} is encrypted; provide the key without a password") from error
    except (ValueError, UnsupportedAlgorithm):
        raise Unusable(f"{what} has no private key in PEM format") from None


def signing_key_of(pem: bytes, what: str) -> Signer:
    """The private key of a CA. This platform creates the first kind, the reference the second. Raises like `key_of`."""
    key = key_of(pem, what)
    if not isinstance(key, Signer):
        raise Unusable(f"{what} is neither an ECDSA nor an RSA key")
    return key


def is_key_of(certificate: x509.Certificate, key: PrivateKeyTypes) -> bool:
    """Whether the key belongs to the certificate."""
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(*form) == certificate.public_key().public_bytes(*form)


def signed_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Whether the issuer's key signed the certificate."""
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def trusted(chain: Sequence[x509.Certificate], authorities: Iterable[x509.Certificate]) -> bool:
    """Whether a served chain (leaf first) leads to one of the CAs. Dates are not checked."""
    accepted = tuple(authorities)
    leaf, intermediates = chain[0], list(chain[1:])
    while leaf not in accepted and not any(signed_by(leaf, each) for each in accepted):
        issuer = next((each for each in intermediates if signed_by(leaf, each)), None)
        if issuer is None:
            return False
        intermediates.remove(issuer)
        leaf = issuer
    return True


def names_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """The DNS names and IP addresses that a serving certificate is valid for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return ()
    addresses = (str(address) for address in names.get_values_for_type(x509.IPAddress))
    return (*names.get_values_for_type(x509.DNSName), *addresses)


def normal(name: str) -> str:
    """A name in the form that `names_of` returns."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name.lower()


def valid_for(certificate: x509.Certificate, name: str) -> bool:
    """Whether a client that connects to the (normalised) name accepts the certificate; `*` stands for one label."""
    anything = f"*.{name.partition('.')[2]}"
    return any(each.lower() in (name, anything) for each in names_of(certificate))


def begins(certificate: x509.Certificate) -> float:
    """First second of its validity, since 1970."""
    return certificate.not_valid_before_utc.timestamp()


def ends(certificate: x509.Certificate) -> float:
    """Last second of its validity, since 1970."""
    return certificate.not_valid_after_utc.timestamp()


def issued(certificate: x509.Certificate) -> float:
    """When the certificate was created: a certificate of this platform is valid from an earlier time on."""
    begun, life = begins(certificate), ends(certificate) - begins(certificate)
    return begun + BACKDATED if life > BACKDATED else begun


def pem_of(*certificates: x509.Certificate) -> bytes:
    """PEM, in this order."""
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def described(certificate: x509.Certificate) -> dict[str, str]:
    """A description for log lines."""
    return {
        "subject": certificate.subject.rfc4514_string(),
        "fingerprint": certificate.fingerprint(hashes.SHA256()).hex()[:16],
        "ends": certificate.not_valid_after_utc.isoformat(),
    }
