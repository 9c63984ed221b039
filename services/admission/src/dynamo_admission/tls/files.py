"""Certificates of the user: read from a folder (a mounted Secret). Unusable files are refused with advice."""

import datetime
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from dynamo_shared.x509 import BACKDATED

from dynamo_admission.tls import pki
from dynamo_admission.tls.pki import Unusable

CHAIN, KEY, AUTHORITIES = "tls.crt", "tls.key", "ca.crt"
# The kubelet writes a new folder and then moves this link to it, so all files of a Secret change at once.
_ATOMIC = "..data"


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A chain to serve (leaf first), its key (PEM), and its CAs."""

    chain: tuple[x509.Certificate, ...]
    key: bytes = field(repr=False)
    authorities: tuple[x509.Certificate, ...] = ()


def read(folder: Path, name: str, now: float, *, announced: bool) -> CertificateFiles:
    """The content of the files, if it is complete and valid for a client that connects to `name`.

    `announced`: this platform announces the CAs, so they must exist: in ca.crt, or as the chain's root in tls.crt.
    Raises Unusable.
    """
    at = folder / _ATOMIC if (folder / _ATOMIC / CHAIN).exists() else folder
    at = at.resolve()
    chain_file, key_file, authorities_file = folder / CHAIN, folder / KEY, folder / AUTHORITIES
    chain = pki.certificates_of(_content(at / CHAIN, chain_file), str(chain_file))
    key = _content(at / KEY, key_file)
    if not pki.is_key_of(chain[0], pki.key_of(key, str(key_file))):
        raise Unusable(f"{key_file} is not the key of the first certificate in {chain_file}: both must be of one pair")
    _require_valid(chain[0], chain_file, now)
    if not pki.valid_for(chain[0], name):
        raise Unusable(
            f"{chain_file} is valid for {', '.join(pki.names_of(chain[0])) or 'no name'}, but the API server connects "
            f"to {name}: issue it with this name as a subject alternative name"
        )
    if not announced:
        return CertificateFiles(chain, key)
    return CertificateFiles(chain, key, _authorities(chain, chain_file, at / AUTHORITIES, authorities_file))


def _authorities(
    chain: tuple[x509.Certificate, ...], chain_file: Path, at: Path, authorities_file: Path
) -> tuple[x509.Certificate, ...]:
    if at.exists():
        authorities = pki.certificates_of(_content(at, authorities_file), str(authorities_file))
        if not pki.trusted(chain, authorities):
            raise Unusable(f"no authority in {authorities_file} issued the certificate in {chain_file}")
        return authorities
    roots = tuple(each for each in chain if pki.signed_by(each, each))
    if not (roots and pki.trusted(chain, roots)):
        raise Unusable(
            f"{authorities_file} is missing, and {chain_file} does not contain the authority of its certificate: "
            "the API server cannot know which authority to trust; add ca.crt"
        )
    return roots


def _content(path: Path, shown: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise Unusable(f"{shown} is missing: mount a Secret with tls.crt and tls.key there") from None
    except OSError as error:
        raise Unusable(f"{shown} cannot be read: {error.strerror}") from error


def _require_valid(certificate: x509.Certificate, file: Path, now: float) -> None:
    if now > pki.ends(certificate):
        raise Unusable(f"the certificate in {file} ended on {_day(pki.ends(certificate))}: renew it")
    if now < pki.begins(certificate) - BACKDATED:
        raise Unusable(f"the certificate in {file} is valid only from {_day(pki.begins(certificate))}: check the clock")


def _day(seconds: float) -> str:
    return f"{datetime.datetime.fromtimestamp(seconds, datetime.UTC):%Y-%m-%d %H:%M} UTC"
