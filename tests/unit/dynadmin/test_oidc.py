"""Whose a verified token of the issuer is."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from inspect import signature
from types import SimpleNamespace
from typing import Any, cast

import jwt
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from dynamo_dynadmin.identity import tokens as tokens_module
from dynamo_dynadmin.identity.login import safe_path
from dynamo_dynadmin.identity.oidc import Issuer
from dynamo_dynadmin.identity.provider import WAITING, IssuerUnavailable, Provider, unprotected
from dynamo_dynadmin.identity.tokens import Tokens
from dynamo_dynadmin.identity.who import Caller, Disallowed, Unidentified
from dynamo_shared.runtime.settings.dynadmin import Oidc
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tests.building.waiting import until

URL, AUDIENCE = "https://sso.test", "dynadmin"
PRIVATE = ec.generate_private_key(ec.SECP256R1())
RSA = rsa.generate_private_key(65537, 2048)


class Keys:
    """A provider with one key."""

    async def key(self, *_: str) -> jwt.PyJWK:
        return jwt.PyJWK({**ECAlgorithm.to_jwk(PRIVATE.public_key(), as_dict=True), "alg": "ES256"})


async def caller(settings: dict[str, Any], **claims: Any) -> Caller:
    said = {"iss": URL, "aud": AUDIENCE, "exp": time.time() + 60, **claims}
    issuer = Issuer(Oidc(issuer=URL, audience=AUDIENCE, **settings), cast("Provider", Keys()))
    return await issuer.caller(jwt.encode(said, PRIVATE, "ES256"))


async def test_claims_and_prefixes_make_the_caller() -> None:
    settings = {"username_claim": "email", "username_prefix": "oidc:", "groups_prefix": "oidc:"}
    result = await caller(settings, email="ann@example.org", groups=["dev", 7])
    assert (result.identity.user, result.identity.groups) == ("oidc:ann@example.org", ("oidc:dev",))


@pytest.mark.parametrize("verified", [False, "false", "true", 0, 1, None])
async def test_an_address_counts_where_the_issuer_says_that_it_is_verified(verified: object) -> None:
    """As with the API server: what is not a boolean says nothing. Some issuers write texts, and any user an address."""
    with pytest.raises(Unidentified, match="not verified"):
        await caller({"username_claim": "email"}, email="ann@example.org", email_verified=verified)
    known = await caller({"username_claim": "email"}, email="ann@example.org", email_verified=True)
    assert known.identity.user == "ann@example.org"


@pytest.mark.parametrize("name", ["system:serviceaccount:kube-system:admin", "system:admin"])
async def test_an_issuer_has_no_identities_of_the_cluster(name: str) -> None:
    """Users of some issuers choose their names themselves."""
    with pytest.raises(Disallowed, match="usernamePrefix"):
        await caller({"username_claim": "preferred_username"}, preferred_username=name)
    prefixed = await caller(
        {"username_claim": "preferred_username", "username_prefix": "oidc:"}, preferred_username=name
    )
    assert prefixed.identity.user == f"oidc:{name}"


async def test_an_expired_token_is_accepted_within_the_tolerance_of_clocks() -> None:
    """The issuer's clock is behind: `exp` has passed here, and not there."""
    issuer = Issuer(Oidc(issuer=URL, audience=AUDIENCE, username_claim="sub"), cast("Provider", Keys()))
    tokens = Tokens(cast("Any", None), issuer=issuer)
    claims = {"iss": URL, "aud": AUDIENCE, "sub": "ann"}
    result = await tokens.caller(jwt.encode({**claims, "exp": time.time() - 20}, PRIVATE, "ES256"))
    assert result.identity.user == "ann"
    with pytest.raises(Unidentified):
        await tokens.caller(jwt.encode({**claims, "exp": time.time() - 40}, PRIVATE, "ES256"))


async def test_a_withdrawn_token_ends_in_time_where_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour back: nor is a new key of the issuer looked for only an hour later."""
    wall, passed = [10_000.0], [100.0]
    clocks = SimpleNamespace(time=lambda: wall[0], monotonic=lambda: passed[0])
    monkeypatch.setattr(tokens_module, "time", clocks)
    known = {"authenticated": True, "user": {"username": "ann"}}

    class Reviews:
        async def create(self, *_: object) -> dict[str, Any]:
            return {"status": known}

    tokens = Tokens(cast("Any", Reviews()))
    assert (await tokens.caller("token-of-ann")).identity.user == "ann"
    known = {"authenticated": False}
    wall[0] -= 3600
    passed[0] += tokens_module.REMEMBERED - 1
    assert (await tokens.caller("token-of-ann")).identity.user == "ann"
    passed[0] += 2
    with pytest.raises(Unidentified):
        await tokens.caller("token-of-ann")
    assert signature(Provider).parameters["now"].default is time.monotonic


@asynccontextmanager
async def published(**paths: Any) -> AsyncIterator[Oidc]:
    """An issuer whose paths answer so."""
    app = web.Application()
    async with TestServer(app, skip_url_asserts=True) as server:
        url = str(server.make_url("/")).rstrip("/")
        document = {
            "issuer": url,
            "authorization_endpoint": f"{url}/authorize",
            "token_endpoint": f"{url}/token",
            "jwks_uri": f"{url}/keys",
        }

        async def discovery(_: web.Request) -> web.Response:
            return web.json_response(document)

        app.router._frozen = False
        app.router.add_get("/.well-known/openid-configuration", discovery)
        for name, handle in paths.items():
            app.router.add_route("*", f"/{name}", handle)
        yield Oidc(issuer=url, audience=AUDIENCE)


@pytest.mark.parametrize(
    ("urls", "names"),
    [
        ({}, []),
        ({"issuer": "https://sso.test", "jwks_uri": "https://sso.test/keys"}, []),
        ({"issuer": "https://sso.test", "jwks_uri": "http://sso.test/keys"}, ["jwksUri"]),
        ({"issuer": "http://sso.test", "jwks_uri": "http://10.0.0.1:8080/keys"}, ["issuer", "jwksUri"]),
        ({"issuer": "http://localhost:8080", "jwks_uri": "http://[::1]:8080/keys"}, []),
        ({"issuer": "http://127.0.0.1", "jwks_uri": "http://localhost.test/keys"}, ["jwksUri"]),
    ],
)
def test_keys_that_come_without_tls_are_named(urls: dict[str, str], names: list[str]) -> None:
    assert unprotected(Oidc(audience=AUDIENCE, **cast("Any", urls))) == names


@pytest.mark.parametrize(
    ("client", "secret", "encoded"),
    [("dynadmin", "s3cret", "dynadmin:s3cret"), ("urn:dyn", "a+b/c=%41 :", "urn%3Adyn:a%2Bb%2Fc%3D%2541+%3A")],
)
async def test_the_client_and_its_secret_are_encoded_as_the_issuer_reads_them(
    client: str, secret: str, encoded: str
) -> None:
    """RFC 6749, 2.3.1: issuers decode both, so that a plus arrived as a blank."""

    async def token(request: web.Request) -> web.Response:
        kind, _, credentials = request.headers["Authorization"].partition(" ")
        return web.json_response({"kind": kind, "credentials": base64.b64decode(credentials).decode()})

    async with published(token=token) as settings:
        answer = await Provider(settings).exchange({"client_id": client}, secret)
    assert answer == {"kind": "Basic", "credentials": encoded}


@pytest.mark.parametrize("what", ["keys", "token", "discovery"])
async def test_redirects_of_an_issuer_are_refused(what: str) -> None:
    """Another address does not speak for the issuer, and gets no secret."""
    led: list[str] = []

    async def elsewhere(request: web.Request) -> web.Response:
        led.append(request.path)
        return web.json_response({"keys": []})

    async def moved(_: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    async with published(
        keys=moved, token=moved, elsewhere=elsewhere, **{"moved/.well-known/openid-configuration": moved}
    ) as settings:
        issuer = f"{settings.issuer}/moved" if what == "discovery" else settings.issuer
        provider = Provider(settings.model_copy(update={"issuer": issuer}))
        with pytest.raises(IssuerUnavailable, match="307"):
            await (provider.exchange({"client_id": "c"}, "s") if what == "token" else provider.key("k", "RS256"))
    assert led == []


@pytest.mark.parametrize("algorithm", ["RS256", "RS512", "PS256"])
async def test_keys_without_an_algorithm_are_used(algorithm: str) -> None:
    """RFC 7517, 4.4: `alg` is optional, and an RSA key verifies six algorithms."""
    document = {**RSAAlgorithm.to_jwk(RSA.public_key(), as_dict=True), "kid": "k"}

    async def keys(_: web.Request) -> web.Response:
        return web.json_response({"keys": [document]})

    async with published(keys=keys) as settings:
        issuer = Issuer(settings, Provider(settings))
        said = {"iss": settings.issuer, "aud": AUDIENCE, "sub": "ann", "exp": time.time() + 60}
        assert (await issuer.claims(jwt.encode(said, RSA, algorithm, {"kid": "k"})))["sub"] == "ann"
        for wrong in (jwt.encode(said, PRIVATE, "ES256", {"kid": "k"}), jwt.encode(said, "", "none")):
            with pytest.raises(Unidentified):
                await issuer.claims(wrong)


class Issuers:
    """Keys of an issuer that may stop to answer."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.answers.set()
        self.fails = False
        self.reads = 0

    async def keys(self, _: web.Request) -> web.Response:
        self.reads += 1
        await self.answers.wait()
        if self.fails:
            return web.Response(status=502)
        return web.json_response({"keys": [{**ECAlgorithm.to_jwk(PRIVATE.public_key(), as_dict=True), "kid": "k"}]})


async def test_a_key_that_was_read_works_while_another_is_looked_for() -> None:
    """Callers choose the ids; the issuer may take its ten seconds for each."""
    issuer, now = Issuers(), [1000.0]
    async with asyncio.timeout(60), published(keys=issuer.keys) as settings:
        provider = Provider(settings, lambda: now[0])
        assert await provider.key("k", "ES256") is not None
        now[0] += 60
        issuer.answers.clear()
        unknown = asyncio.create_task(provider.key("unknown", "ES256"))
        await until(lambda: issuer.reads == 2)
        async with asyncio.timeout(8):
            assert await provider.key("k", "ES256") is not None
        issuer.answers.set()
        assert await unknown is None


async def test_an_issuer_that_fails_is_not_asked_for_each_unknown_key() -> None:
    issuer, now = Issuers(), [1000.0]
    async with asyncio.timeout(60), published(keys=issuer.keys) as settings:
        provider = Provider(settings, lambda: now[0])
        assert await provider.key("k", "ES256") is not None
        now[0] += 60
        issuer.fails = True
        for _ in range(3):
            with pytest.raises(IssuerUnavailable):
                await provider.key("unknown", "ES256")
        assert issuer.reads == 2
        now[0] += 11
        issuer.fails = False
        assert await provider.key("unknown", "ES256") is None
        assert issuer.reads == 3


async def test_an_issuer_that_fails_is_not_asked_for_its_endpoints_by_each_login() -> None:
    reads, now, document = 0, [1000.0], dict[str, str]()

    async def discovery(_: web.Request) -> web.Response:
        nonlocal reads
        reads += 1
        return web.json_response(document)

    async with asyncio.timeout(60), published(**{"late/.well-known/openid-configuration": discovery}) as settings:
        late = settings.model_copy(update={"issuer": f"{settings.issuer}/late"})
        provider = Provider(late, lambda: now[0])
        logins = await asyncio.gather(*(provider.endpoints() for _ in range(3)), return_exceptions=True)
        assert [type(each) for each in logins] == [IssuerUnavailable] * 3
        assert reads == 1, "logins at the same time share an answer"
        document |= {"issuer": late.issuer, "authorization_endpoint": f"{late.issuer}/authorize"}
        with pytest.raises(IssuerUnavailable, match="another issuer"):
            await provider.endpoints()
        now[0] += 11
        assert (await provider.endpoints()).authorization == f"{late.issuer}/authorize"
        assert reads == 2


async def test_a_limited_number_of_tokens_waits_for_a_silent_issuer() -> None:
    """Anyone can write a token with an unknown key id: requests that wait have places that other callers need."""
    issuer = Issuers()
    async with asyncio.timeout(60), published(keys=issuer.keys) as settings:
        provider = Provider(settings)
        issuer.answers.clear()
        waiting = [asyncio.create_task(provider.key(f"k{number}", "ES256")) for number in range(WAITING)]
        await until(lambda: issuer.reads)
        with pytest.raises(IssuerUnavailable, match="wait for the issuer's keys"):
            await provider.key("k", "ES256")
        issuer.answers.set()
        assert await asyncio.gather(*waiting) == [None] * WAITING
        assert await provider.key("k", "ES256") is not None


@pytest.mark.parametrize(
    ("path", "back"),
    [
        ("/n/team/graphs?x=1", "/n/team/graphs?x=1"),
        ("https://evil.test/", "/"),
        ("//evil.test", "/"),
        ("/\\evil.test", "/"),
        ("javascript:alert(1)", "/"),
        ("/\r\nSet-Cookie:x=y", "/"),
        ("/é", "/"),
        ("a", "/"),
        ("/" + "a" * 512, "/"),
    ],
)
def test_a_login_returns_only_to_paths_of_this_origin(path: str, back: str) -> None:
    assert safe_path(path) == back
