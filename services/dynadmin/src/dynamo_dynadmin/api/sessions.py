"""Browser sessions: they begin with a token or a login at the issuer, and end by the user or when the token expires."""

from aiohttp import web

from dynamo_dynadmin.deploy.problems import FieldProblem
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.problems import ProblemError
from dynamo_dynadmin.identity.login import WITHIN, Logins, safe_path
from dynamo_dynadmin.identity.seal import TooLong
from dynamo_dynadmin.identity.session import COOKIE, LOGIN_COOKIE, Sessions
from dynamo_dynadmin.identity.tokens import Tokens
from dynamo_dynadmin.identity.who import Unidentified

PATH = "/api/v1/session"
#: The body of a new session: the caller is not known yet, and no cookie can hold a token of 4 KiB. Bytes.
LARGEST_BODY = 32 << 10


class SessionPages:
    """Begins and ends sessions."""

    def __init__(self, tokens: Tokens, sessions: Sessions, logins: Logins | None) -> None:
        self._tokens = tokens
        self._sessions = sessions
        self._logins = logins

    async def ways(self, call: Call) -> web.StreamResponse:
        """The ways to begin a session."""
        return call.answer({"token": True, "login": f"{PATH}/login" if self._logins is not None else None})

    async def login(self, call: Call) -> web.StreamResponse:
        """Send the browser to the issuer."""
        begun = await self._configured().begin(safe_path(call.text("returnTo")))
        answer = _redirect(begun.url)
        # Lax: the browser must send it when the issuer redirects back.
        _set(answer, LOGIN_COOKIE, begun.cookie, "Lax", seconds=int(WITHIN))
        return answer

    async def callback(self, call: Call) -> web.StreamResponse:
        """The issuer has redirected the browser back: begin a session."""
        logins = self._configured()
        cookie = call.request.cookies.get(LOGIN_COOKIE, "")
        if call.text("error"):
            # Any site can send a browser here, so its text must not appear on a page of this service.
            logins.begun(cookie, call.text("state"))
            raise Unidentified(f"the issuer refuses the login: {call.text('error')} {call.text('error_description')}")
        token, back = await logins.finish(cookie, call.text("state"), call.text("code"), call.text("iss"))
        caller = await self._tokens.caller(token)
        try:
            _, sealed = self._sessions.begin(token, caller.expires)
        except TooLong as error:
            raise ProblemError("invalid", str(error)) from None
        answer = _redirect(back)
        _set(answer, COOKIE, sealed, "Strict")
        _set(answer, LOGIN_COOKIE, "", "Lax", seconds=0)
        return answer

    def _configured(self) -> Logins:
        if self._logins is None:
            raise ProblemError("not-found", "no issuer for logins is configured (platform.dynadmin.oidc.clientId)")
        return self._logins

    async def begin(self, call: Call) -> web.StreamResponse:
        """Begin a session from a pasted token. The token is stored only in a sealed cookie."""
        call.request = call.request.clone(client_max_size=LARGEST_BODY)
        body = await call.object()
        token = body.get("token")
        if not isinstance(token, str) or not token:
            raise ProblemError(
                "invalid", "/token: required", errors=[FieldProblem("/token", "required: a bearer token")]
            )
        caller = await self._tokens.caller(token.strip())
        try:
            session, cookie = self._sessions.begin(token.strip(), caller.expires)
        except TooLong as error:
            raise ProblemError("invalid", str(error), errors=[FieldProblem("/token", str(error))]) from None
        answer = call.answer(
            {"user": caller.identity.user, "csrfToken": session.csrf, "expires": session.expires}, status=201
        )
        _set(answer, COOKIE, cookie, "Strict")
        return answer

    async def show(self, call: Call) -> web.StreamResponse:
        """The session of the request, with its CSRF token, for a reloaded page."""
        session = self._sessions.open(call.request.cookies.get(COOKIE, ""))
        if session is None or not call.caller.by_session:
            raise ProblemError("not-found", "this request has no session")
        return call.answer({"user": call.caller.identity.user, "csrfToken": session.csrf, "expires": session.expires})

    async def end(self, _: Call) -> web.StreamResponse:
        """End the session in this browser."""
        answer = web.Response(status=204)
        _set(answer, COOKIE, "", "Strict", seconds=0)
        return answer


def _redirect(location: str) -> web.Response:
    return web.Response(status=303, headers={"Location": location, "Referrer-Policy": "no-referrer"})


def _set(answer: web.Response, name: str, value: str, same_site: str, *, seconds: int | None = None) -> None:
    answer.set_cookie(name, value, path="/", secure=True, httponly=True, samesite=same_site, max_age=seconds)
