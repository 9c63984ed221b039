"""Tokens of an issuer that the API server does not trust, verified with the issuer's published keys."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import jwt
from dynamo_shared.kube import Unavailable
from dynamo_shared.runtime.settings.dynadmin import Oidc

from dynamo_dynadmin.identity.who import Caller, Unidentified, identity_of

#: Signatures of key pairs alone: a key that is published must not also make tokens.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
#: Issuers rotate keys over days; an unknown key id is looked for at once, but not more often than this. Seconds.
KEYS_FOR, KEYS_NOT_BEFORE = 3600.0, 10.0
ANSWER_WITHIN = 10.0
LARGEST_ANSWER = 1 << 20
#: Clocks differ. Seconds.
LEEWAY = 30.0


class Issuer:
    """Verifies tokens of the configured issuer."""

    def __init__(self, settings: Oidc, now: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._now = now
        self._keys: dict[str, jwt.PyJWK] = {}
        self._read = float("-inf")
        self._reading = asyncio.Lock()

    def knows(self, token: str) -> bool:
        """Whether the token claims to be of this issuer. Nothing is verified yet."""
        try:
            claims = jwt.decode(token, options={"verify_signature": False})
        except jwt.PyJWTError:
            return False
        return claims.get("iss") == self._settings.issuer

    async def caller(self, token: str) -> Caller:
        """Whose token it is: signature, issuer, audience and times are verified."""
        settings = self._settings
        try:
            header = jwt.get_unverified_header(token)
            key = await self._key(str(header.get("kid") or ""))
            claims = jwt.decode(
                token,
                key,
                algorithms=list(ALGORITHMS),
                audience=settings.audience,
                issuer=settings.issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWTError as error:
            raise Unidentified(f"the token is not valid: {error}") from error
        user, groups = claims.get(settings.username_claim), self._groups(claims)
        if not isinstance(user, str) or not user:
            raise Unidentified(f"the token has no claim {settings.username_claim}")
        if settings.username_claim == "email" and claims.get("email_verified") is False:
            raise Unidentified("the token's email address is not verified")
        identity = identity_of(settings.username_prefix + user, "", groups)
        return Caller(identity, float(claims["exp"]))

    def _groups(self, claims: dict[str, Any]) -> list[str]:
        named = claims.get(self._settings.groups_claim) if self._settings.groups_claim else None
        listed = [named] if isinstance(named, str) else named if isinstance(named, list) else []
        return [self._settings.groups_prefix + each for each in listed if isinstance(each, str)]

    async def _key(self, identifier: str) -> jwt.PyJWK:
        async with self._reading:
            age = self._now() - self._read
            if age > KEYS_FOR or (identifier not in self._keys and age > KEYS_NOT_BEFORE):
                self._keys = await self._published()
                self._read = self._now()
        if identifier in self._keys:
            return self._keys[identifier]
        if not identifier and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        raise Unidentified("the token is signed with a key that its issuer does not publish")

    async def _published(self) -> dict[str, jwt.PyJWK]:
        settings = self._settings
        tls: ssl.SSLContext | bool = True
        if settings.ca_file is not None:
            tls = await asyncio.to_thread(ssl.create_default_context, cafile=str(settings.ca_file))
        timeout = aiohttp.ClientTimeout(total=ANSWER_WITHIN)
        try:
            async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(ssl=tls)) as session:
                uri = settings.jwks_uri
                if not uri:
                    document = await _json(session, f"{settings.issuer.rstrip('/')}/.well-known/openid-configuration")
                    if document.get("issuer") != settings.issuer:
                        raise Unavailable(
                            0, "IssuerUnavailable", "the issuer's discovery document names another issuer"
                        )
                    uri = str(document.get("jwks_uri") or "")
                    if urlsplit(settings.issuer).scheme == "https" and urlsplit(uri).scheme != "https":
                        raise Unavailable(0, "IssuerUnavailable", "the issuer's keys are not published over https")
                keys = jwt.PyJWKSet.from_dict(await _json(session, uri)).keys
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, jwt.PyJWTError) as error:
            raise Unavailable(0, "IssuerUnavailable", f"the issuer's keys cannot be read: {error}") from error
        return {str(key.key_id or ""): key for key in keys if key.key_type != "oct"}


async def _json(session: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    async with session.get(url, allow_redirects=False) as response:
        response.raise_for_status()
        content = await response.content.read(LARGEST_ANSWER)
        found = json.loads(content)
    if not isinstance(found, dict):
        raise ValueError(f"{url} is not a JSON object")  # noqa: TRY004 - a wrong answer, not a wrong call
    return found
