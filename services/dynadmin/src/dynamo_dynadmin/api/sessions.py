"""Browser sessions: begun with a token, ended by the user, or with the token."""

from __future__ import annotations

from aiohttp import web

from dynamo_dynadmin.deploy.problems import Problem
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.problems import ProblemError
from dynamo_dynadmin.identity.session import COOKIE, Sessions, TooLong
from dynamo_dynadmin.identity.tokens import Tokens


class SessionPages:
    """Begins and ends sessions."""

    def __init__(self, tokens: Tokens, sessions: Sessions) -> None:
        self._tokens = tokens
        self._sessions = sessions

    async def begin(self, call: Call) -> web.StreamResponse:
        """A session of a pasted token. The token goes into a sealed cookie and nowhere else."""
        body = await call.object()
        token = body.get("token")
        if not isinstance(token, str) or not token:
            raise ProblemError("invalid", "/token: required", errors=[Problem("/token", "required: a bearer token")])
        caller = await self._tokens.caller(token.strip())
        try:
            session, cookie = self._sessions.begin(token.strip(), caller.expires)
        except TooLong as error:
            raise ProblemError("invalid", str(error), errors=[Problem("/token", str(error))]) from None
        answer = call.answer(
            {"user": caller.identity.user, "csrfToken": session.csrf, "expires": session.expires}, status=201
        )
        answer.set_cookie(COOKIE, cookie, path="/", secure=True, httponly=True, samesite="Strict")
        return answer

    async def show(self, call: Call) -> web.StreamResponse:
        """The session of the request, with its CSRF token: after a page was loaded again."""
        session = self._sessions.open(call.request.cookies.get(COOKIE, ""))
        if session is None or not call.caller.by_session:
            raise ProblemError("not-found", "this request has no session")
        return call.answer({"user": call.caller.identity.user, "csrfToken": session.csrf, "expires": session.expires})

    async def end(self, call: Call) -> web.StreamResponse:
        """End the session in this browser."""
        answer = web.Response(status=204)
        answer.set_cookie(COOKIE, "", path="/", secure=True, httponly=True, samesite="Strict", max_age=0)
        del call
        return answer
