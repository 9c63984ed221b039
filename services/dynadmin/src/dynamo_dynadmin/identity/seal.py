"""Content that browsers keep for this service, sealed: without the key it cannot be read, changed or created."""

import base64
import json
import os
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

#: Browsers keep cookies of up to 4096 bytes, including name and attributes.
LONGEST_COOKIE = 3900
_NONCE = 12


class TooLong(ValueError):
    """The content does not fit into a cookie."""


class Seal:
    """Seals and opens content for one purpose: content sealed for another purpose does not open."""

    def __init__(self, key: bytes, purpose: bytes) -> None:
        self._cipher = AESGCM(key)
        self._purpose = purpose

    def seal(self, content: Any) -> str:
        """Content (JSON) as the value of a cookie. Raises TooLong if no cookie can hold it."""
        nonce = os.urandom(_NONCE)
        sealed = self._cipher.encrypt(nonce, json.dumps(content).encode(), self._purpose)
        value = base64.urlsafe_b64encode(nonce + sealed).decode()
        if len(value) > LONGEST_COOKIE:
            raise TooLong("this token is too long for a session; send it as a bearer token")
        return value

    def open(self, value: str) -> Any:
        """The content; None if it was not sealed with this key and for this purpose, or was changed."""
        try:
            content = base64.b64decode(value, altchars=b"-_", validate=True)
            return json.loads(self._cipher.decrypt(content[:_NONCE], content[_NONCE:], self._purpose))
        except (ValueError, InvalidTag):
            return None
