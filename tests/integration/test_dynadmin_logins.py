"""Tokens of an OIDC issuer and browser logins, against a real issuer and a real API server."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_dynadmin.identity.provider import NOT_BEFORE
from dynamo_shared.kube import KubeClient

from .dynadmin import Answer, Api, dynadmin, may
from .oidc_issuer import CLIENT, SECRET, OidcIssuer

CALLBACK = "https://dynadmin.test/api/v1/session/callback"


@pytest.fixture
async def issuer() -> AsyncIterator[OidcIssuer]:
    async with OidcIssuer().serving() as running:
        yield running


@pytest.fixture
def configured(issuer: OidcIssuer, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    (tmp_path / "key").write_text(base64.b64encode(b"k" * 32).decode())
    return {
        "HEARTBEAT": "0.1s",
        "RECHECK": "0.3s",
        "SESSION_KEY_FILE": str(tmp_path / "key"),
        "OIDC__ISSUER": issuer.url,
        "OIDC__AUDIENCE": CLIENT,
        "OIDC__CLIENT_ID": CLIENT,
        "OIDC__CLIENT_SECRET_FILE": str(tmp_path / "secret"),
        "OIDC__REDIRECT_URL": CALLBACK,
        "OIDC__USERNAME_PREFIX": "oidc:",
        "OIDC__GROUPS_PREFIX": "oidc:",
    }


@pytest.fixture
async def api(
    control_plane: ControlPlane, nats_server: NatsServer, kube: KubeClient, namespace: str, configured: dict[str, str]
) -> AsyncIterator[Api]:
    await may(kube, namespace, "ann", {"kind": "User", "name": "oidc:ann"})
    async with dynadmin(control_plane.kubeconfig, nats_server.url, **configured) as running:
        yield running


def forged(issuer: OidcIssuer) -> dict[str, str]:
    """Tokens that must be rejected, by their error."""
    claims = {"iss": issuer.url, "sub": "ann", "aud": CLIENT, "exp": time.time() + 60}
    public = issuer.public_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    header, _, signature = issuer.token().split(".")
    payload = jwt.encode({**claims, "sub": "root"}, "x" * 32, "HS256").split(".")[1]
    stranger = OidcIssuer()
    stranger.url = issuer.url
    return {
        "expired": issuer.token(exp=time.time() - 60),
        "for another audience": issuer.token(aud="other"),
        "without audience": issuer.token(aud=None),
        "without end": issuer.token(exp=None),
        "not yet valid": issuer.token(nbf=time.time() + 600),
        "without a user": issuer.token(sub=None),
        "signed by no one": jwt.encode(claims, "", "none"),
        "signed with the public key as a secret": hmac_signed(claims, public),
        "changed after it was signed": f"{header}.{payload}.{signature}",
        "signed with a key that is not published": stranger.token(),
        "of another issuer": issuer.token(iss="https://elsewhere.test"),
    }


def hmac_signed(claims: dict[str, Any], secret: bytes) -> str:
    """A signature that the library refuses to create."""

    def part(content: bytes) -> bytes:
        return base64.urlsafe_b64encode(content).rstrip(b"=")

    signed = part(b'{"alg":"HS256","typ":"JWT"}') + b"." + part(json.dumps(claims).encode())
    return (signed + b"." + part(hmac.new(secret, signed, hashlib.sha256).digest())).decode()


async def test_dynadmin_verifies_tokens_of_the_issuer(
    api: Api, issuer: OidcIssuer, kube: KubeClient, namespace: str
) -> None:
    me = await api("GET", "/api/v1/me", token=issuer.token())
    assert (me.status, me.json["user"], me.json["groups"]) == (200, "oidc:ann", ["oidc:dev"])
    many = f"/api/v1/namespaces/{namespace}/deployments"
    assert (await api("GET", many, token=issuer.token())).status == 200
    assert (await api("GET", many, token=issuer.token(sub="bob"))).status == 403
    # Kubernetes' own groups are never accepted from an issuer: a prefix renames them.
    masters = await api("GET", "/api/v1/me", token=issuer.token(groups=["system:masters"]))
    assert masters.json["groups"] == ["oidc:system:masters"]
    for why, token in forged(issuer).items():
        assert (await api("GET", many, token=token)).status == 401, why


async def test_rotated_keys_are_fetched_and_strangers_cannot_force_fetches(api: Api, issuer: OidcIssuer) -> None:
    assert (await api("GET", "/api/v1/me", token=issuer.token())).status == 200
    stranger = OidcIssuer()
    stranger.url = issuer.url
    began = time.monotonic()
    for _ in range(20):
        stranger.rotate()
        assert (await api("GET", "/api/v1/me", token=stranger.token())).status == 401
    # If a busy machine generates keys slowly, dynadmin fetches them again after each interval.
    assert issuer.key_reads <= 2 + (time.monotonic() - began) // NOT_BEFORE


async def test_a_stream_ends_with_its_token(api: Api, issuer: OidcIssuer, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/deployments?watch=true"
    # On a busy machine a token may expire before its stream starts: the next one lasts longer.
    for issuer.lasts in (1.5, 6.0, 24.0):
        async with asyncio.timeout(120), api.stream(path, token=issuer.token()) as events:
            if (await events.until("synced"))[-1][0] != "synced":
                continue
            event, data, _ = await events.next()
            assert (event, "expired" in data["detail"]) == ("unauthorized", True)
            assert (await events.next())[0] == "closed"
            return
    pytest.fail("no stream began before its token ended")


async def start_login(api: Api, back: str = "/%23/team-a/deployments/a") -> tuple[str, str]:
    """The redirect of the browser, and its cookie."""
    answer = await api("GET", f"/api/v1/session/login?returnTo={back}")
    assert answer.status == 303
    cookie = answer.headers["Set-Cookie"]
    assert {"HttpOnly", "Secure", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
    return answer.headers["Location"], cookie.partition(";")[0]


async def log_in_at_issuer(api: Api, url: str) -> dict[str, str]:
    """The parameters with which the issuer redirects the browser back."""
    async with api.session.get(url, allow_redirects=False) as response:
        location = urlsplit(response.headers["Location"])
    assert f"{location.scheme}://{location.netloc}{location.path}" == CALLBACK
    return {name: values[0] for name, values in parse_qs(location.query).items()}


async def back(api: Api, cookie: str, **given: str) -> Answer:
    query = "&".join(f"{name}={value}" for name, value in given.items())
    return await api("GET", f"/api/v1/session/callback?{query}", Cookie=cookie)


async def test_a_browser_logs_in_at_the_issuer(api: Api, issuer: OidcIssuer, namespace: str) -> None:
    assert (await api("GET", "/api/v1/session/ways")).json == {"token": True, "login": "/api/v1/session/login"}
    url, login = await start_login(api)
    asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    assert (asked["response_type"], asked["code_challenge_method"], asked["redirect_uri"]) == ("code", "S256", CALLBACK)
    answered = await log_in_at_issuer(api, url)
    done = await back(api, login, **answered)
    assert (done.status, done.headers["Location"]) == (303, "/#/team-a/deployments/a")
    session = next(each for each in done.headers.getall("Set-Cookie") if each.startswith("__Host-dynadmin="))
    assert {"HttpOnly", "Secure", "SameSite=Strict", "Path=/"} <= set(session.split("; "))
    cookie = session.partition(";")[0]
    shown = await api("GET", "/api/v1/session", Cookie=cookie)
    assert shown.json["user"] == "oidc:ann"
    assert shown.json["expires"] <= time.time() + issuer.lasts
    many = f"/api/v1/namespaces/{namespace}/deployments"
    assert (await api("GET", many, Cookie=cookie)).status == 200
    made = {"metadata": {"name": "m"}, "spec": {"modelName": "m", "baseModelName": "b"}}
    models = f"/api/v1/namespaces/{namespace}/models"
    assert (await api("POST", models, made, Cookie=cookie)).json["type"] == "urn:dynamo:problem:csrf"
    csrf = shown.json["csrfToken"]
    assert (await api("POST", models, made, Cookie=cookie, X_CSRF_Token=csrf)).status == 201
    # A code can be used once.
    assert (await back(api, login, **answered)).status == 401


async def test_logins_that_dynadmin_did_not_start_are_rejected(api: Api, issuer: OidcIssuer) -> None:
    url, login = await start_login(api)
    answered = await log_in_at_issuer(api, url)
    other_url, other = await start_login(api)
    assert (await back(api, "", **answered)).status == 401, "without the cookie"
    assert (await back(api, other, **answered)).status == 401, "with the cookie of another login"
    assert (await back(api, login, **{**answered, "state": "x"})).status == 401
    assert (await back(api, login, **{**answered, "iss": "https://elsewhere.test"})).status == 401
    # An attacker's code in the victim's login: PKCE's verifier does not match.
    stolen = await log_in_at_issuer(api, other_url)
    assert (await back(api, login, **{**answered, "code": stolen["code"]})).status == 401
    session = (await api("POST", "/api/v1/session", {"token": issuer.token()})).headers["Set-Cookie"]
    sealed = session.partition(";")[0].replace("__Host-dynadmin=", "__Host-dynadmin-login=")
    assert (await back(api, sealed, **answered)).status == 401, "a cookie for another purpose"
    issuer.nonce = "of another login"
    url, login = await start_login(api)
    assert (await back(api, login, **await log_in_at_issuer(api, url))).status == 401
    issuer.nonce, issuer.denies = None, True
    url, login = await start_login(api)
    denied = await back(api, login, **await log_in_at_issuer(api, url))
    assert (denied.status, "not today" in denied.json["detail"]) == (401, True)


async def test_users_are_redirected_only_to_this_origin(api: Api) -> None:
    url, login = await start_login(api, "//evil.test")
    done = await back(api, login, **await log_in_at_issuer(api, url))
    assert (done.status, done.headers["Location"]) == (303, "/")


async def test_an_unreachable_issuer_is_reported(api: Api, issuer: OidcIssuer, namespace: str) -> None:
    del namespace
    issuer.url = "https://elsewhere.test"
    assert (await api("GET", "/api/v1/session/login")).status == 503
