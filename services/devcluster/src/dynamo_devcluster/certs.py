"""A local certificate authority, and the certificates and keys of a local cluster (ECDSA P-256)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from dynamo_shared.x509 import Signer, key_pem, make_authority, make_leaf, subject

#: Validity of new certificates, and minimum remaining validity of a reused certificate. Seconds.
LIFETIME, MIN_REMAINING = 365 * 86400.0, 86400.0
LOCAL_NAMES = ("localhost", "127.0.0.1")


@dataclass(frozen=True)
class KeyPair:
    """PEM files of a certificate and its private key."""

    certificate: Path
    key: Path


class CertificateAuthority:
    """A CA with its files in `folder`. Existing certificates are reused, so clients of an earlier start remain valid."""

    def __init__(self, folder: Path, name: str = "dynamo-local-ca") -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.pair = KeyPair(folder / "ca.crt", folder / "ca.key")
        if not _usable(self.pair):
            _write(self.pair, *make_authority(time.time(), LIFETIME, name))
            # Clients would refuse leaf certificates of an earlier CA.
            for stale in folder.glob("*.crt"):
                if stale != self.pair.certificate:
                    stale.unlink()
        key = serialization.load_pem_private_key(self.pair.key.read_bytes(), password=None)
        if not isinstance(key, Signer):
            raise TypeError(f"{self.pair.key} has no signing key; remove {folder}")
        self._key = key
        self._certificate = x509.load_pem_x509_certificate(self.pair.certificate.read_bytes())

    @property
    def certificate(self) -> Path:
        """The CA certificate that clients must trust."""
        return self.pair.certificate

    def server(self, name: str, names: Sequence[str] = LOCAL_NAMES, *, also_client: bool = False) -> KeyPair:
        """Server certificate for DNS names and IP addresses.

        With `also_client` it is also valid as a client certificate: etcd's JSON gateway presents it to etcd, and
        answers 503 without it if etcd requires client certificates.
        """
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, *([ExtendedKeyUsageOID.CLIENT_AUTH] if also_client else [])]
        return self._issue(name, name, (), names, uses)

    def client(self, name: str, user: str | None = None, groups: Sequence[str] = ()) -> KeyPair:
        """Client certificate: common name `user` (default: `name`), organizations `groups`."""
        return self._issue(name, user if user is not None else name, groups, (), [ExtendedKeyUsageOID.CLIENT_AUTH])

    def _issue(
        self,
        name: str,
        common_name: str,
        groups: Sequence[str],
        names: Sequence[str],
        uses: list[x509.ObjectIdentifier],
    ) -> KeyPair:
        pair = KeyPair(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        if _usable(pair):
            return pair
        certificate, key = make_leaf(
            self._certificate,
            self._key,
            subject(common_name, groups),
            names=names,
            now=time.time(),
            validity=LIFETIME,
            uses=uses,
        )
        _write(pair, certificate, key)
        return pair


def signing_key(folder: Path) -> tuple[Path, Path]:
    """(private, public) PEM files of a key that signs ServiceAccount tokens; existing files are reused."""
    folder.mkdir(parents=True, exist_ok=True)
    private, public = folder / "service-account.key", folder / "service-account.pub"
    try:
        known = serialization.load_pem_public_key(public.read_bytes())
        usable = serialization.load_pem_private_key(private.read_bytes(), password=None).public_key() == known
    except (FileNotFoundError, ValueError):
        usable = False
    if not usable:
        key = ec.generate_private_key(ec.SECP256R1())
        _write_key(private, key_pem(key))
        public.write_bytes(
            key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
    return private, public


def _usable(pair: KeyPair) -> bool:
    """Whether both files exist, are complete (an earlier start may have been interrupted), match each other, and are
    valid for MIN_REMAINING seconds more.
    """
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
        key = serialization.load_pem_private_key(pair.key.read_bytes(), password=None)
    except (FileNotFoundError, ValueError):
        return False
    matches = certificate.public_key() == key.public_key()
    return matches and certificate.not_valid_after_utc.timestamp() > time.time() + MIN_REMAINING


def _write(pair: KeyPair, certificate: x509.Certificate, key: bytes) -> None:
    _write_key(pair.key, key)
    pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _write_key(path: Path, key: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(key)
