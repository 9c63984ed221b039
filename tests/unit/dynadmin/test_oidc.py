"""Whose a verified token of the issuer is."""

from __future__ import annotations

import time
from typing import Any, cast

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from dynamo_dynadmin.identity.oidc import Issuer
from dynamo_dynadmin.identity.provider import Provider
from dynamo_dynadmin.identity.tokens import Tokens
from dynamo_dynadmin.identity.who import Caller, Disallowed, Unidentified
from dynamo_shared.runtime.settings.dynadmin import Oidc
from jwt.algorithms import ECAlgorithm

URL, AUDIENCE = "https://sso.test", "dynadmin"
PRIVATE = ec.generate_private_key(ec.SECP256R1())


class Keys:
    """A provider with one key."""

    async def key(self, _: str) -> jwt.PyJWK:
        return jwt.PyJWK({**ECAlgorithm.to_jwk(PRIVATE.public_key(), as_dict=True), "alg": "ES256"})


async def caller(settings: dict[str, Any], **claims: Any) -> Caller:
    said = {"iss": URL, "aud": AUDIENCE, "exp": time.time() + 60, **claims}
    issuer = Issuer(Oidc(issuer=URL, audience=AUDIENCE, **settings), cast("Provider", Keys()))
    return await issuer.caller(jwt.encode(said, PRIVATE, "ES256"))


async def test_claims_and_prefixes_make_the_caller() -> None:
    settings = {"username_claim": "email", "username_prefix": "oidc:", "groups_prefix": "oidc:"}
    result = await caller(settings, email="ann@example.org", groups=["dev", 7])
    assert (result.identity.user, result.identity.groups) == ("oidc:ann@example.org", ("oidc:dev",))


@pytest.mark.parametrize("name", ["system:serviceaccount:kube-system:admin", "system:admin"])
async def test_an_issuer_has_no_identities_of_the_cluster(name: str) -> None:
    """Users of some issuers choose their names themselves."""
    with pytest.raises(Disallowed, match="usernamePrefix"):
        await caller({"username_claim": "preferred_username"}, preferred_username=name)
    prefixed = await caller(
        {"username_claim": "preferred_username", "username_prefix": "oidc:"}, preferred_username=name
    )
    assert prefixed.identity.user == f"oidc:{name}"


async def test_a_token_counts_for_as_long_as_clocks_may_differ() -> None:
    """The issuer's clock is behind: `exp` has passed here, and not there."""
    issuer = Issuer(Oidc(issuer=URL, audience=AUDIENCE, username_claim="sub"), cast("Provider", Keys()))
    tokens = Tokens(cast("Any", None), issuer=issuer)
    claims = {"iss": URL, "aud": AUDIENCE, "sub": "ann"}
    result = await tokens.caller(jwt.encode({**claims, "exp": time.time() - 20}, PRIVATE, "ES256"))
    assert result.identity.user == "ann"
    with pytest.raises(Unidentified):
        await tokens.caller(jwt.encode({**claims, "exp": time.time() - 40}, PRIVATE, "ES256"))
