"""Browser sessions without a store: a cookie that scripts cannot read holds the sealed token.

Any replica with the key can open it. Changes also need the session's CSRF token in a header: pages of other origins
cannot read that token, and the cookie does not suffice.
"""

import base64
import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from dynamo_shared.runtime.settings import InvalidSettings

from dynamo_dynadmin.identity.seal import Seal

#: The prefix binds the cookie to this host, to https (or localhost) and to the path /: no other host can set it.
COOKIE, LOGIN_COOKIE = "__Host-dynadmin", "__Host-dynadmin-login"
CSRF_HEADER = "X-CSRF-Token"
_PURPOSE = b"dynadmin session v1"


@dataclass(frozen=True, slots=True)
class LoginSession:
    """The content of a cookie. `expires` is a Unix time."""

    token: str
    csrf: str
    expires: float


class Sessions:
    """Seals and opens session cookies. `lasts` is in seconds."""

    def __init__(self, key: bytes, lasts: float, now: Callable[[], float] = time.time) -> None:
        self._seal = Seal(key, _PURPOSE)
        self._lasts = lasts
        self._now = now

    def begin(self, token: str, token_expires: float | None) -> tuple[LoginSession, str]:
        """A session for a verified token, and its cookie. Raises TooLong if no cookie can hold it."""
        expires = self._now() + self._lasts
        if token_expires is not None:
            expires = min(expires, token_expires)
        session = LoginSession(token, secrets.token_urlsafe(24), expires)
        return session, self._seal.seal([session.token, session.csrf, session.expires])

    def open(self, cookie: str) -> LoginSession | None:
        """The session of a cookie; None if it was not sealed with this key, was changed, or has ended."""
        content = self._seal.open(cookie)
        if content is None:
            return None
        session = LoginSession(*content)
        return session if self._now() < session.expires else None


def is_same(given: str, expected: str) -> bool:
    """Compares two texts in a time that does not reveal where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def key_of(file: Path | None) -> bytes:
    """The key in a file; without a file, a new key. Raises InvalidSettings."""
    if file is None:
        return AESGCM.generate_key(256)
    try:
        key = base64.b64decode(file.read_text().strip(), validate=True)
    except OSError as error:
        raise InvalidSettings(str(file), [f"cannot be read: {error.strerror or error}"]) from error
    except ValueError:
        key = b""
    if len(key) != 32:
        raise InvalidSettings(str(file), ["must contain 32 bytes as base64: head -c 32 /dev/urandom | base64"])
    return key
