"""Verifies tokens of an issuer that the API server does not trust, with the issuer's published keys."""

from typing import Any

import jwt
from dynamo_shared.runtime.settings.dynadmin import Oidc

from dynamo_dynadmin.identity.provider import Provider
from dynamo_dynadmin.identity.who import SYSTEM, Caller, Disallowed, Unidentified, identity_of

#: Only asymmetric signatures: a published key must not be able to sign tokens.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
#: Tolerated difference of clocks. Seconds.
LEEWAY = 30.0


class Issuer:
    """Verifies tokens of the configured issuer."""

    def __init__(self, settings: Oidc, provider: Provider) -> None:
        self._settings = settings
        self._provider = provider

    def knows(self, token: str) -> bool:
        """Whether the token claims to come from this issuer. Nothing is verified yet."""
        try:
            claims = jwt.decode(token, options={"verify_signature": False})
        except jwt.PyJWTError:
            return False
        return claims.get("iss") == self._settings.issuer

    async def caller(self, token: str) -> Caller:
        """The caller that the token identifies. Raises Unidentified, Disallowed and IssuerUnavailable."""
        settings, claims = self._settings, await self.claims(token)
        user, groups = claims.get(settings.username_claim), self._groups(claims)
        if not isinstance(user, str) or not user:
            raise Unidentified(f"the token has no claim {settings.username_claim}")
        # As in the API server: a claim of another type, such as the text "false", verifies nothing.
        if settings.username_claim == "email" and claims.get("email_verified", True) is not True:
            raise Unidentified("the token's email address is not verified")
        name = settings.username_prefix + user
        if name.startswith(SYSTEM):
            # Identities of the cluster, including service accounts, have tokens of the cluster. Issuers may let users
            # choose names.
            raise Disallowed(
                f"the issuer names {name}, an identity of the cluster; set platform.dynadmin.oidc.usernamePrefix"
            )
        return Caller(identity_of(name, "", groups), float(claims["exp"]))

    async def claims(self, token: str) -> dict[str, Any]:
        """The token's claims, after its signature, issuer, audience and times are verified. Raises Unidentified and
        IssuerUnavailable.
        """
        settings = self._settings
        try:
            header = jwt.get_unverified_header(token)
            if (algorithm := header.get("alg")) not in ALGORITHMS:
                raise Unidentified(f"the token is not signed with one of {', '.join(ALGORITHMS)}")
            key = await self._provider.key(str(header.get("kid") or ""), algorithm)
            if key is None:
                raise Unidentified("the token is signed with a key that its issuer does not publish")
            claims: dict[str, Any] = jwt.decode(
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
        return claims

    def _groups(self, claims: dict[str, Any]) -> list[str]:
        named = claims.get(self._settings.groups_claim) if self._settings.groups_claim else None
        listed = [named] if isinstance(named, str) else named if isinstance(named, list) else []
        return [self._settings.groups_prefix + each for each in listed if isinstance(each, str)]
