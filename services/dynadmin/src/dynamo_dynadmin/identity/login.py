"""Login at the issuer: the authorization code flow with PKCE (RFC 7636), without a store.

A sealed cookie of the browser that began the login keeps state, nonce and PKCE's verifier, with which the issuer's
answer is compared.
"""

import asyncio
import hashlib
import secrets
import time
from base64 import urlsafe_b64encode
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from dynamo_shared.runtime.settings.dynadmin import Oidc

from dynamo_dynadmin.identity.oidc import Issuer
from dynamo_dynadmin.identity.provider import IssuerRefused, IssuerUnavailable, Provider
from dynamo_dynadmin.identity.seal import Seal
from dynamo_dynadmin.identity.session import is_same
from dynamo_dynadmin.identity.who import Unidentified

#: Time for the user to return from the issuer. Seconds.
WITHIN = 600.0
_PURPOSE = b"dynadmin login v1"
_AGAIN = "the login did not start in this browser, or took too long; log in again"


class StartedLogin(NamedTuple):
    """A login that has begun: the URL for the browser, and the cookie that it keeps."""

    url: str
    cookie: str


class Logins:
    """Begins and finishes logins. `settings.client_id` must not be empty."""

    def __init__(self, settings: Oidc, key: bytes, provider: Provider, issuer: Issuer) -> None:
        self._settings = settings
        self._seal = Seal(key, _PURPOSE)
        self._provider = provider
        self._issuer = issuer

    async def begin(self, back: str) -> StartedLogin:
        """Begin a login; `back` is the path of the page to which the user returns. Raises IssuerUnavailable."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        challenge = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        settings, endpoint = self._settings, (await self._provider.endpoints()).authorization
        query = urlencode(
            {
                "response_type": "code",
                "client_id": settings.client_id,
                "redirect_uri": settings.redirect_url,
                "scope": " ".join(("openid", *(each for each in settings.scopes if each != "openid"))),
                "state": state,
                "nonce": nonce,
                "code_challenge": challenge,
                "code_challenge_method": "S256",
            }
        )
        cookie = self._seal.seal([state, nonce, verifier, back, time.time() + WITHIN])
        return StartedLogin(f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{query}", cookie)

    def begun(self, cookie: str, state: str) -> tuple[str, str, str]:
        """Nonce, verifier and page of the login that this browser began with this state. Raises Unidentified."""
        sealed = self._seal.open(cookie)
        if sealed is None or time.time() >= sealed[4] or not is_same(state, sealed[0]):
            raise Unidentified(_AGAIN)
        _, nonce, verifier, back, _ = sealed
        return nonce, verifier, back

    async def finish(self, cookie: str, state: str, code: str, issuer: str) -> tuple[str, str]:
        """The verified id token of a login, and the page to return to. Raises Unidentified and IssuerUnavailable."""
        nonce, verifier, back = self.begun(cookie, state)
        if issuer and issuer != self._settings.issuer:
            raise Unidentified("another issuer answered this login")
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._settings.redirect_url,
            "client_id": self._settings.client_id,
            "code_verifier": verifier,
        }
        try:
            answer = await self._provider.exchange(form, await self._secret())
        except IssuerRefused as error:
            raise Unidentified(f"the issuer refuses the login: {error}") from error
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise Unidentified("the issuer answered without an id token")
        claims = await self._issuer.claims(token)
        if not is_same(str(claims.get("nonce") or ""), nonce):
            raise Unidentified("the token belongs to another login")
        return token, back

    async def _secret(self) -> str:
        file = self._settings.client_secret_file
        if file is None:
            return ""
        try:
            return (await asyncio.to_thread(file.read_text)).strip()
        except OSError as error:
            raise IssuerUnavailable(f"{file}: {error.strerror or error}") from error


def safe_path(text: str) -> str:
    """A path of this origin to return to; `/` for any text that a browser could treat as another origin."""
    plain = text.startswith("/") and not text.startswith("//") and "\\" not in text and text.isprintable()
    return text if plain and text.isascii() and len(text) <= 512 else "/"
