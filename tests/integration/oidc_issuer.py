"""A small OIDC issuer: discovery, keys that rotate, the authorization code flow with PKCE, over HTTP on this machine."""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlencode

import jwt
from aiohttp import encode_basic_auth, web
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from dynamo_shared.runtime.endpoints import serving
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

CLIENT, SECRET = "dynadmin", "hush hush"


@dataclass
class Grant:
    """An issued code."""

    challenge: str
    redirect: str
    nonce: str
    user: str


@dataclass
class OidcIssuer:
    """The issuer; `user` with `groups` logs in. `lasts`: seconds for which its tokens are valid."""

    url: str = ""
    user: str = "ann"
    groups: tuple[str, ...] = ("dev",)
    lasts: float = 300.0
    denies: bool = False
    nonce: str | None = None
    """in place of the requested one"""
    key_reads: int = 0
    _keys: dict[str, Any] = field(default_factory=dict)
    _current: str = ""
    _grants: dict[str, Grant] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rotate()

    def rotate(self, *, keep: bool = True) -> None:
        """Sign with another key from now on."""
        if not keep:
            self._keys.clear()
        self._current = secrets.token_hex(4)
        many = len(self._keys) % 2
        self._keys[self._current] = (
            ec.generate_private_key(ec.SECP256R1()) if many else rsa.generate_private_key(65537, 2048)
        )

    def token(self, *, key: str = "", **claims: Any) -> str:
        """A token of the user; claims that are None are omitted."""
        now = time.time()
        said = {
            "iss": self.url,
            "sub": self.user,
            "aud": CLIENT,
            "iat": int(now),
            "exp": now + self.lasts,
            "groups": list(self.groups),
            **claims,
        }
        private = self._keys[key or self._current]
        algorithm = "RS256" if isinstance(private, rsa.RSAPrivateKey) else "ES256"
        results = {name: value for name, value in said.items() if value is not None}
        return jwt.encode(results, private, algorithm, headers={"kid": key or self._current})

    @property
    def public_key(self) -> Any:
        """The public half of the signing key."""
        return self._keys[self._current].public_key()

    async def _discovery(self, _: web.Request) -> web.Response:
        return web.json_response(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
            }
        )

    async def _jwks(self, _: web.Request) -> web.Response:
        self.key_reads += 1
        listed = []
        for name, private in self._keys.items():
            made = RSAAlgorithm if isinstance(private, rsa.RSAPrivateKey) else ECAlgorithm
            listed.append({**made.to_jwk(private.public_key(), as_dict=True), "kid": name, "use": "sig"})
        return web.json_response({"keys": listed})

    async def _authorize(self, request: web.Request) -> web.Response:
        """The user logs in at once and is redirected back."""
        asked = request.query
        back = {"state": asked["state"], "iss": self.url, "session_state": "whatever"}
        if (asked["response_type"], asked["client_id"], asked["code_challenge_method"]) != ("code", CLIENT, "S256"):
            return web.Response(status=400)
        if self.denies:
            back |= {"error": "access_denied", "error_description": "not today"}
        else:
            code = back["code"] = secrets.token_urlsafe(8)
            grant = Grant(asked["code_challenge"], asked["redirect_uri"], asked["nonce"], self.user)
            self._grants[code] = grant
        return web.Response(status=302, headers={"Location": f"{asked['redirect_uri']}?{urlencode(back)}"})

    async def _token(self, request: web.Request) -> web.Response:
        form = await request.post()
        # RFC 6749, 2.3.1: both are form-encoded before they become Basic credentials.
        if request.headers.get("Authorization") != encode_basic_auth(quote_plus(CLIENT), quote_plus(SECRET)):
            return web.json_response({"error": "invalid_client"}, status=401)
        grant = self._grants.pop(str(form["code"]), None)
        digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if grant is None or grant.challenge != challenge or grant.redirect != form["redirect_uri"]:
            return web.json_response({"error": "invalid_grant", "error_description": "no such code"}, status=400)
        nonce = grant.nonce if self.nonce is None else self.nonce
        return web.json_response(
            {"access_token": "opaque", "token_type": "Bearer", "id_token": self.token(nonce=nonce)}
        )

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[OidcIssuer]:
        """Listen during the block; `url` is its address."""
        app = web.Application()
        app.router.add_get("/.well-known/openid-configuration", self._discovery)
        app.router.add_get("/keys", self._jwks)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_post("/token", self._token)
        async with serving(app, "127.0.0.1", 0) as port:
            self.url = f"http://127.0.0.1:{port}"
            yield self
