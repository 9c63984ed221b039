"""Logins and sessions as browsers meet them."""

from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import web
from dynamo_dynadmin.api.routes.session import session
from dynamo_dynadmin.api.sessions import LARGEST_BODY, SessionPages
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.identity.login import Logins
from dynamo_dynadmin.identity.provider import Endpoints, IssuerUnavailable
from dynamo_dynadmin.identity.session import COOKIE, LOGIN_COOKIE, Sessions
from dynamo_shared.runtime.settings.dynadmin import Oidc

from .http_world import ABSENT, PAGE, server_of, serving


async def test_a_session_that_has_ended_can_be_ended() -> None:
    """The token is not verified: it may have expired, and the API server may be away."""
    sessions = Sessions(b"k" * 32, 60.0)
    _, ended = Sessions(b"k" * 32, 60.0, lambda: 0.0).begin("token", None)
    async with server_of(session(SessionPages(ABSENT, sessions, None)), sessions=sessions) as client:
        answer = await client.delete("/api/v1/session", headers={"Cookie": f"{COOKIE}={ended}"})
    assert answer.status == 204
    assert answer.headers["Set-Cookie"].startswith(f'{COOKIE}=""; ')
    assert "Max-Age=0" in answer.headers["Set-Cookie"]


@pytest.mark.parametrize(
    ("accepted", "kind"), [("text/html,*/*;q=0.8", "text/html"), ("*/*", "application/problem+json")]
)
async def test_a_person_whose_login_fails_sees_a_page(accepted: str, kind: str) -> None:
    login, state, cookie = await login_begun()
    async with server_of(session(SessionPages(ABSENT, ABSENT, login))) as client:
        query = {"error": "access_denied", "error_description": "<script>no</script>", "state": state}
        headers = {"Accept": accepted, "Cookie": f"{LOGIN_COOKIE}={cookie}"}
        answer = await client.get("/api/v1/session/callback", params=query, headers=headers)
        text = await answer.text()
    assert (answer.status, answer.content_type) == (401, kind)
    assert "the issuer refuses the login: access_denied" in text
    if kind == "text/html":
        assert "<script>" not in text
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]


async def test_only_the_answer_to_a_login_of_this_browser_is_shown() -> None:
    """A page of another site can send a browser here with any words, and they would stand on a page of this one."""
    login, state, cookie = await login_begun()
    async with server_of(session(SessionPages(ABSENT, ABSENT, login))) as client:
        for sent, kept in (({}, cookie), ({"state": "another"}, cookie), ({"state": state}, "")):
            query = {"error": "call", "error_description": "+1 555 0100", **sent}
            headers = {"Accept": "text/html", "Cookie": f"{LOGIN_COOKIE}={kept}"}
            answer = await client.get("/api/v1/session/callback", params=query, headers=headers)
            assert answer.status == 401
            assert "555" not in await answer.text()


async def login_begun() -> tuple[Logins, str, str]:
    """Logins, and the state and cookie of one that a browser has begun."""

    async def endpoints() -> Endpoints:
        return Endpoints("https://sso.test/authorize", "", "")

    back = f"{PAGE}/api/v1/session/callback"
    settings = Oidc(issuer="https://sso.test", audience="a", client_id="dynadmin", redirect_url=back)
    logins = Logins(settings, b"k" * 32, cast("Any", SimpleNamespace(endpoints=endpoints)), ABSENT)
    begun = await logins.begin("/")
    return logins, parse_qs(urlsplit(begun.url).query)["state"][0], begun.cookie


async def test_a_session_that_begins_may_not_send_a_large_body() -> None:
    """The caller is not known yet, and hundreds of such bodies would be held in memory."""
    async with serving(SessionPages(ABSENT, ABSENT, None).begin) as client:
        assert (await client.post("/x", json={"token": "t" * LARGEST_BODY})).status == 413


async def test_an_issuer_that_does_not_answer_is_not_taken_for_the_api_server() -> None:
    async def login(_: Call) -> web.StreamResponse:
        raise IssuerUnavailable("the issuer answers 502")

    async with serving(login, "GET") as client:
        answer = await client.get("/x")
        assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
        assert (await answer.json())["detail"] == "the issuer answers 502"
