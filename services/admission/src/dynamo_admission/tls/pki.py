"""X.509: creates and reads authorities and serving certificates, and checks trust. ECDSA P-256."""

import ipaddress
from collections.abc import Iterable, Sequence

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from dynamo_shared.x509 import BACKDATED, LONGEST_COMMON_NAME, builder, general_name, key_pem, key_usage


class Unusable(ValueError):
    """A certificate, its key or its authorities cannot be used; the message says which, why, and what to do."""


def make_authority(now: float, validity: float, name: str = "dynamo-admission-ca") -> tuple[x509.Certificate, bytes]:
    """A self-signed authority and its key (PEM), valid for so many seconds. It signs no other authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    # A name of its own: with two authorities of one name, a verifier may try the wrong one.
    subject = _name(f"{name}-{identifier.digest.hex()[:12]}")
    certificate = (
        builder(subject, subject, key.public_key(), now, now + validity)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(signs=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate, key_pem(key)


def make_serving(
    authority: x509.Certificate, authority_key: bytes, names: Sequence[str], now: float, validity: float
) -> tuple[x509.Certificate, bytes]:
    """A serving certificate for DNS names and IP addresses, and its key (PEM). It ends no later than its authority."""
    common = next((name for name in names if len(name) <= LONGEST_COMMON_NAME), "dynamo-admission")
    return make_leaf(
        authority,
        authority_key,
        common,
        names=names,
        now=now,
        validity=validity,
        uses=[ExtendedKeyUsageOID.SERVER_AUTH],
    )


def make_leaf(
    authority: x509.Certificate,
    authority_key: bytes,
    common: str,
    *,
    names: Sequence[str],
    now: float,
    validity: float,
    uses: Sequence[x509.ObjectIdentifier],
) -> tuple[x509.Certificate, bytes]:
    """A certificate of a server, a client or both, and its key (PEM). It ends no later than its authority."""
    signer = signing_key_of(authority_key, "the authority's key")
    key = ec.generate_private_key(ec.SECP256R1())
    alternative = x509.SubjectAlternativeName([general_name(name) for name in names or [common]])
    certificate = (
        builder(_name(common), authority.subject, key.public_key(), now, min(now + validity, ends(authority)))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(alternative, critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_identifier(authority), critical=False)
        .sign(signer, hashes.SHA256())
    )
    return certificate, key_pem(key)


def certificates_of(pem: bytes, what: str) -> tuple[x509.Certificate, ...]:
    """All certificates of a PEM text, in its order. Unusable where the text has no certificate or a broken one."""
    try:
        return tuple(x509.load_pem_x509_certificates(pem))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise Unusable(f"{what} holds no certificate in PEM form: {error}") from error


def key_of(pem: bytes, what: str) -> PrivateKeyTypes:
    """The private key of a PEM text. Unusable where it is missing, broken or encrypted; never quotes it."""
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except TypeError as error:
        raise Unusable(f"{what} is encrypted; it must be given without a password") from error
    except (ValueError, UnsupportedAlgorithm):
        raise Unusable(f"{what} holds no private key in PEM form") from None


def signing_key_of(pem: bytes, what: str) -> ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey:
    """The private key of an authority: this platform creates the first kind, the reference the second. Unusable as `key_of`."""
    key = key_of(pem, what)
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise Unusable(f"{what} is neither an ECDSA nor an RSA key")
    return key


def belong_together(certificate: x509.Certificate, key: PrivateKeyTypes) -> bool:
    """Whether the key is the certificate's."""
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
    """Whether a served chain (the leaf first) leads to one of the authorities. Dates are not checked."""
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
    """A name as `names_of` gives it."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name.lower()


def valid_for(certificate: x509.Certificate, name: str) -> bool:
    """Whether a client that connects to the (normal) name accepts the certificate; `*` stands for one label."""
    anything = f"*.{name.partition('.')[2]}"
    return any(each.lower() in (name, anything) for each in names_of(certificate))


def begins(certificate: x509.Certificate) -> float:
    """First second of its validity, since 1970."""
    return certificate.not_valid_before_utc.timestamp()


def ends(certificate: x509.Certificate) -> float:
    """Last second of its validity, since 1970."""
    return certificate.not_valid_after_utc.timestamp()


def issued(certificate: x509.Certificate) -> float:
    """When it was created: a certificate of this platform is valid from an earlier time on."""
    begun, life = begins(certificate), ends(certificate) - begins(certificate)
    return begun + BACKDATED if life > BACKDATED else begun


def pem_of(*certificates: x509.Certificate) -> bytes:
    """PEM, in this order."""
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def described(certificate: x509.Certificate) -> dict[str, str]:
    """For log lines."""
    return {
        "subject": certificate.subject.rfc4514_string(),
        "fingerprint": certificate.fingerprint(hashes.SHA256()).hex()[:16],
        "ends": certificate.not_valid_after_utc.isoformat(),
    }


def _name(common: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Dynamo Platform"),
            x509.NameAttribute(NameOID.COMMON_NAME, common),
        ]
    )


def _identifier(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """As the authority names its key: verifiers compare, and there is more than one way to make the name."""
    try:
        named = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())  # type: ignore[arg-type]
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(named)
