"""Content that browsers keep for this service: sealed, so that it cannot be read, changed or created without the key."""

import base64
import json
import os
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

#: Browsers keep cookies of 4096 bytes, name and attributes included.
LONGEST_COOKIE = 3900
_NONCE = 12


class TooLong(ValueError):
    """The content does not fit into a cookie."""


class Seal:
    """Seals and opens for one purpose: what was sealed for another one does not open."""

    def __init__(self, key: bytes, purpose: bytes) -> None:
        self._cipher = AESGCM(key)
        self._purpose = purpose

    def seal(self, content: Any) -> str:
        """Content (JSON) as the value of a cookie. TooLong where no cookie holds it."""
        nonce = os.urandom(_NONCE)
        sealed = self._cipher.encrypt(nonce, json.dumps(content).encode(), self._purpose)
        value = base64.urlsafe_b64encode(nonce + sealed).decode()
        if len(value) > LONGEST_COOKIE:
            raise TooLong("this token is too long for a session; call with it as a bearer token")
        return value

    def open(self, value: str) -> Any:
        """The content; None where it was not sealed with the key and for the purpose, or was changed."""
        try:
            content = base64.b64decode(value, altchars=b"-_", validate=True)
            return json.loads(self._cipher.decrypt(content[:_NONCE], content[_NONCE:], self._purpose))
        except (ValueError, InvalidTag):
            return None
