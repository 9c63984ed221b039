"""The NKey of a NATS user: an Ed25519 key whose public half the server knows (https://github.com/nats-io/nkeys).

nats-py needs another package for it, which is not installed: cryptography signs the same.
"""

import base64
import binascii
import re

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# The kind of a key is in its first bytes: in base32, seeds of users begin with SU, and their public keys with U.
_SEED, _PUBLIC = b"\x95\x00", b"\xa0"
_CHECKSUM_BYTES = 2
_JWT, _KEY = (re.compile(rf"-+BEGIN {name}-+\s+(\S+)") for name in ("NATS USER JWT", "USER NKEY SEED"))


class UserKey:
    """Signs what a server asks for. Raises ValueError, which does not quote the seed, if it is not a user's."""

    def __init__(self, seed: str) -> None:
        try:
            content = base64.b32decode(seed + "=" * (-len(seed) % 8))
        except ValueError:
            content = b""
        head, secret = content[:-_CHECKSUM_BYTES], content[len(_SEED) : -_CHECKSUM_BYTES]
        if not head.startswith(_SEED) or len(secret) != 32 or _checked(head) != content:
            raise ValueError("the NKey seed is not one of a user, which has 58 characters and begins with SU")
        self._key = Ed25519PrivateKey.from_private_bytes(secret)

    @property
    def public(self) -> str:
        """The public key, by which the server knows the user."""
        return base64.b32encode(_checked(_PUBLIC + self._key.public_key().public_bytes_raw())).decode().rstrip("=")

    def sign(self, nonce: str) -> bytes:
        """The signature in base64."""
        return base64.b64encode(self._key.sign(nonce.encode()))


def in_credentials(text: str) -> tuple[bytes, UserKey]:
    """The JWT and the key in a credentials file. Raises ValueError if one of them is missing or invalid."""
    jwt, seed = _JWT.search(text), _KEY.search(text)
    if jwt is None or seed is None:
        raise ValueError("the credentials file has no NATS USER JWT, or no USER NKEY SEED")
    return jwt[1].encode(), UserKey(seed[1])


def _checked(content: bytes) -> bytes:
    """The content with its checksum, CRC-16/XMODEM."""
    return content + binascii.crc_hqx(content, 0).to_bytes(_CHECKSUM_BYTES, "little")
