"""Routes with which browsers begin and end a session."""

from collections.abc import Iterator

from dynamo_dynadmin.api.routes.section import PREFIX, RouteSection
from dynamo_dynadmin.api.sessions import SessionPages
from dynamo_dynadmin.http.routes import JSON, Parameter, ResponseSpec, Route

_FROM_ISSUER = ("code", "state", "iss", "error", "error_description")


def session(pages: SessionPages) -> Iterator[Route]:
    """With a token, or at the issuer."""
    route = RouteSection("session", f"{PREFIX}/session")
    summary = "How a browser can start a session."
    yield route("GET /ways", "listSessionWays", summary, pages.ways, "SessionWays", public=True)
    yield route(
        "GET /login",
        "logIn",
        "Sends the browser to the issuer, to log in (authorization code flow with PKCE).",
        pages.login,
        {303: ResponseSpec("To the issuer.", {}, ("Location", "Set-Cookie"))},
        "not-found",
        query=(Parameter("returnTo", "Path of the page to return to."),),
        public=True,
        by_browser=True,
    )
    yield route(
        "GET /callback",
        "finishLogIn",
        "The issuer sends the browser back here: starts the session.",
        pages.callback,
        {303: ResponseSpec("To the page.", {}, ("Location", "Set-Cookie"))},
        *("not-found", "unidentified", "invalid"),
        query=tuple(Parameter(name, "Set by the issuer.") for name in _FROM_ISSUER),
        public=True,
        lenient=True,
        by_browser=True,
    )
    yield route(
        "POST ",
        "beginSession",
        "Start a browser session with a token, stored in a cookie that scripts cannot read.",
        pages.begin,
        {201: ResponseSpec("The session.", {JSON: "SessionAnswer"}, ("Set-Cookie",))},
        "invalid",
        body={JSON: "TokenBody"},
        public=True,
    )
    summary = "The session of this browser, with its CSRF token."
    yield route("GET ", "getSession", summary, pages.show, "SessionAnswer", "not-found")
    ended = {204: ResponseSpec("Ended.", {}, ("Set-Cookie",))}
    # Also accepts a token that is no longer valid. No page of another origin can send this request.
    yield route("DELETE ", "endSession", "End the session of this browser.", pages.end, ended, public=True)
