"""The HTTP server: identifies callers, limits requests, and turns exceptions into problems."""

import asyncio
import re
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from hashlib import sha256

import structlog
from aiohttp import web
from dynamo_shared.aio import Lanes, Offload, Shares
from dynamo_shared.kube import KubeClient, KubeError
from dynamo_shared.kube.warning_header import header_of
from dynamo_shared.lru import LruCache
from dynamo_shared.runtime.ratelimit import RateLimit
from dynamo_shared.runtime.settings.dynadmin import Dynadmin

from dynamo_dynadmin.deploy import InvalidIntent
from dynamo_dynadmin.http import page
from dynamo_dynadmin.http.call import LARGE_AT_ONCE, LARGE_BODY, TURN, Call, OngoingRequest
from dynamo_dynadmin.http.compression import compress, vary
from dynamo_dynadmin.http.connection import HttpConnection
from dynamo_dynadmin.http.problems import ProblemError, invalid, of_kube
from dynamo_dynadmin.http.routes import Route
from dynamo_dynadmin.http.streaming import HeadersOnly
from dynamo_dynadmin.identity.provider import IssuerUnavailable
from dynamo_dynadmin.identity.session import COOKIE, CSRF_HEADER, Sessions, is_same
from dynamo_dynadmin.identity.tokens import Tokens
from dynamo_dynadmin.identity.who import Caller, Disallowed, Unidentified, anonymous, network_of, whose_limit
from dynamo_dynadmin.metrics import DynadminMetrics

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_IMPERSONATE = "impersonate-"
#: A field manager has at most 128 characters; user names may be longer. A hash then distinguishes them.
_LONGEST_MANAGER = 128
#: Compression does not shrink smaller answers. Bytes.
_WORTH_COMPRESSING = 1400
_LIMITS = 10_000
#: One caller may use a quarter of the concurrent requests: a chat whose frontend does not answer takes minutes. Requests
#: without a caller, and those whose token is under review, have half as many places each, which networks share.
_SHARE, _UNKNOWN = 4, 2
_COMPRESSED = frozenset({"application/json", "application/problem+json", "application/yaml"})
#: Response headers that pages of other origins may read.
_EXPOSED = "ETag, Location, X-Request-ID, Retry-After, Warning, Idempotency-Replayed, X-Managed-By"

log = structlog.get_logger("dynamo.dynadmin")


class HttpServer:
    """Serves a route table."""

    def __init__(
        self,
        routes: Iterable[Route],
        kube: KubeClient,
        *,
        tokens: Tokens,
        sessions: Sessions,
        metrics: DynadminMetrics,
        settings: Dynadmin,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._routes = tuple(routes)
        self._kube = kube
        self._tokens = tokens
        self._sessions = sessions
        self._metrics = metrics
        self._settings = settings
        self._clock = clock
        self._limits: LruCache[str, RateLimit] = LruCache(_LIMITS)
        self._large = Offload(above=LARGE_BODY, at_once=LARGE_AT_ONCE)
        self._of_users, self._public, self._identifying = Shares(), Shares(), Shares()
        self._turns = Lanes(1)
        self.draining = False

    def app(self) -> web.Application:
        """The application."""
        app = web.Application(client_max_size=self._settings.max_body_bytes, middlewares=[self._around])
        # Streams begin before the middleware has their answer.
        app.on_response_prepare.append(self._share)
        for route in self._routes:
            handle = self._handler(route)
            app.router.add_route(route.method, route.path, handle)
            if route.method == "GET" and not route.by_browser:
                # RFC 9110, 9.1: HEAD for every GET, except a login, which has side effects.
                app.router.add_route("HEAD", route.path, handle)
        for path, handle in page.routes().items():
            app.router.add_get(path, handle)
        return app

    def unreadable(self, detail: str) -> web.Response:
        """The answer to a request that the HTTP parser refused, which has no route and no caller."""
        identifier = str(uuid.uuid4())
        answer = ProblemError("bad-request", detail).response(identifier)
        self._stamp(answer, identifier)
        self._metrics.answered("none", answer.status, None)
        log.info("unreadable", request=identifier, detail=detail)
        return answer

    def _handler(self, route: Route) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            turn = request[TURN]
            turn.operation, turn.by_browser = route.operation, route.by_browser
            caller = anonymous(request.remote or "") if route.public else await self._caller(request)
            if isinstance(request.protocol, HttpConnection):
                request.protocol.user = caller.limit_key
            call = self._call(request, route, caller)
            if not route.public:
                self._limit(caller)
            with ExitStack() as place:
                turn.leave = place.close
                place.enter_context(self._place(call))
                call.check_query()
                return await route.handle(call)

        return handle

    @web.middleware
    async def _around(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        given = request.headers.get("X-Request-ID", "")
        identifier = given.lower() if _UUID.fullmatch(given) else str(uuid.uuid4())
        turn = request[TURN] = OngoingRequest(identifier)
        started = self._clock()
        try:
            answer = await self._answered(request, handler, identifier)
        except asyncio.CancelledError:
            self._record(request, turn.status_if_left, None, started)
            raise
        if turn.by_browser and answer.status >= 400 and "text/html" in request.headers.get("Accept", ""):
            answer = page.of_problem(answer)
        streamed = answer.prepared and not isinstance(answer, web.Response)
        self._record(request, answer.status, None if streamed else self._clock() - started, started)
        if not answer.prepared:
            self._finish(request, answer, identifier)
        return answer

    def _record(self, request: web.Request, status: int, seconds: float | None, started: float) -> None:
        """Log and count a request that has ended. `seconds`: None for a stream, and if the client left."""
        turn = request[TURN]
        self._metrics.answered(turn.operation, status, seconds)
        log.info(
            "answered",
            request=turn.id,
            operation=turn.operation,
            method=request.method,
            path=request.path,
            status=status,
            user=turn.caller.identity.user if turn.caller is not None else "",
            seconds=round(self._clock() - started, 4),
        )

    async def _answered(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
        identifier: str,
    ) -> web.StreamResponse:
        try:
            if (preflight := self._preflight(request)) is not None:
                return preflight
            # Thousands of requests without a token must not delay others: networks take turns to begin one.
            async with self._turns.quick_turn(network_of(request.remote or "")):
                self._refuse_impersonation(request)
            return await handler(request)
        except HeadersOnly as head:
            return head.response
        except ProblemError as problem:
            return problem.response(identifier)
        except InvalidIntent as error:
            return invalid(error.problems).response(identifier)
        except Unidentified as error:
            self._metrics.refused.labels("unidentified").inc()
            headers = {"WWW-Authenticate": 'Bearer realm="dynadmin"'}
            return ProblemError("unidentified", str(error), headers=headers).response(identifier)
        except Disallowed as error:
            self._metrics.refused.labels("disallowed").inc()
            return ProblemError("forbidden", str(error)).response(identifier)
        except KubeError as error:
            return of_kube(error).response(identifier)
        except IssuerUnavailable as error:
            away = ProblemError("unavailable", str(error), retry_after=5, reason="IssuerUnavailable")
            return away.response(identifier)
        except web.HTTPException as error:
            return _problem_of(error).response(identifier)
        except (ConnectionError, TimeoutError) as error:
            return ProblemError("bad-request", f"the request ended early: {error}").response(identifier)
        except Exception:
            log.exception("not answered", request=identifier, path=request.path)
            detail = "the service failed on this request; the service's log has the reason under this request's id"
            return ProblemError("internal", detail).response(identifier)

    async def _caller(self, request: web.Request) -> Caller:
        """The caller, by bearer token or session. Raises Unidentified, Disallowed and ProblemError."""
        if headers := request.headers.getall("Authorization", ()):
            if len(headers) > 1:
                # A proxy may have checked a different header than the one that would be used here.
                raise Unidentified(f"one Authorization header is allowed, not {len(headers)}")
            scheme, _, token = headers[0].partition(" ")
            if scheme.lower() != "bearer":
                raise Unidentified("Authorization must be Bearer with a token")
            token = token.strip()
            caller = await self._caller_of_token(token, request)
        elif (cookie := request.cookies.get(COOKIE)) is not None:
            session = self._sessions.open(cookie)
            if session is None:
                raise Unidentified("the session is not valid, or has ended; log in again")
            if request.method not in _SAFE and not is_same(request.headers.get(CSRF_HEADER, ""), session.csrf):
                self._metrics.refused.labels("csrf").inc()
                raise ProblemError("csrf", f"send the session's CSRF token as {CSRF_HEADER}")
            token = session.token
            caller = await self._caller_of_token(token, request)
            expires = session.expires if caller.expires is None else min(session.expires, caller.expires)
            caller = Caller(caller.identity, expires, by_session=True)
        else:
            raise Unidentified("send a bearer token, or start a session")
        turn = request[TURN]
        turn.caller, turn.again = caller, partial(self._tokens.caller, token)
        return caller

    async def _caller_of_token(self, token: str, request: web.Request) -> Caller:
        """The caller of a token. Raises ProblemError if too many tokens are under review: known callers keep their
        places, and networks have shares.
        """
        if (known := self._tokens.remembered(token)) is not None:
            return known
        if not self._tokens.is_of_cluster(token):
            return await self._tokens.caller(token)
        network = network_of(request.remote or "")
        if self._identifying.is_full(network, self._part(_UNKNOWN)):
            self._metrics.refused.labels("busy").inc()
            detail = f"{self._identifying.total} tokens are being checked; retry later"
            raise ProblemError("unavailable", detail, retry_after=1)
        with self._identifying.taken(network), self._metrics.in_flight.track_inprogress():
            return await self._tokens.caller(token)

    def _call(self, request: web.Request, route: Route, caller: Caller) -> Call:
        turn, kube = request[TURN], self._kube
        if not route.public:
            kube = kube.for_identity(
                caller.identity, request=turn.id, field_manager=manager_of(caller), warned=turn.warnings.append
            )
        return Call(request, route, caller, kube, self._large)

    def _limit(self, caller: Caller) -> None:
        limit = self._limits.touch(caller.limit_key)
        if limit is None:
            settings = self._settings
            limit = self._limits[caller.limit_key] = RateLimit(
                settings.requests_per_second, settings.burst, self._clock
            )
        if (wait := limit.take()) > 0:
            limit.give_back()
            self._metrics.refused.labels("rate").inc()
            after = max(1, round(wait))
            detail = f"too many requests {whose_limit(caller.limit_key)}"
            raise ProblemError("too-many-requests", detail, retry_after=after)

    @contextmanager
    def _place(self, call: Call) -> Iterator[None]:
        """A place for a request. Raises ProblemError if there are too many: other callers keep their places.

        Sending a body slowly needs no token. A stream leaves its place early: streams have their own limits.
        """
        public, key = call.route.public, call.caller.limit_key
        places, most = (self._public, self._part(_UNKNOWN)) if public else (self._of_users, self._part(1))
        if (own := places.count(key)) >= self._part(_SHARE):
            self._metrics.refused.labels("busy").inc()
            whose = "without a caller" if public else whose_limit(key)
            detail = f"{own} requests {whose} are in progress; retry later"
            raise ProblemError("too-many-requests", detail, retry_after=1)
        if places.is_full(key, most):
            self._metrics.refused.labels("busy").inc()
            detail = f"{places.total} requests are in progress; retry later"
            raise ProblemError("unavailable", detail, retry_after=1)
        with places.taken(key), self._metrics.in_flight.track_inprogress():
            yield

    def _part(self, divisor: int) -> int:
        return max(1, self._settings.max_in_flight // divisor)

    def _refuse_impersonation(self, request: web.Request) -> None:
        if any(name.lower().startswith(_IMPERSONATE) for name in request.headers):
            self._metrics.refused.labels("impersonation").inc()
            raise ProblemError("bad-request", "Impersonate- headers are not allowed; call as the acting user")

    def _preflight(self, request: web.Request) -> web.Response | None:
        origin = request.headers.get("Origin", "")
        asked = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
        if not asked or origin not in self._settings.cors_origins:
            return None
        return web.Response(
            status=204,
            headers={
                "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
                "Access-Control-Allow-Headers": "Authorization, Content-Type, If-Match, If-None-Match, Idempotency-Key, "
                "Last-Event-ID, X-Request-ID",
                "Access-Control-Max-Age": "600",
            },
        )

    async def _share(self, request: web.Request, answer: web.StreamResponse) -> None:
        """Let pages of the configured origins read the answer. Caches keep answers per origin, also those that no other
        origin may read.
        """
        if not self._settings.cors_origins:
            return
        vary(answer.headers, "Origin")
        if (origin := request.headers.get("Origin", "")) in self._settings.cors_origins:
            # Without credentials: other origins send a token, never a session.
            answer.headers["Access-Control-Allow-Origin"] = origin
            answer.headers["Access-Control-Expose-Headers"] = _EXPOSED

    def _finish(self, request: web.Request, answer: web.StreamResponse, identifier: str) -> None:
        self._stamp(answer, identifier)
        answer.headers.extend(("Warning", header_of(each)) for each in dict.fromkeys(request[TURN].warnings))
        if (
            isinstance(answer, web.Response)
            and answer.content_type in _COMPRESSED
            and (answer.content_length or 0) > _WORTH_COMPRESSING
        ):
            compress(request, answer)
        if self.draining:
            answer.force_close()

    @staticmethod
    def _stamp(answer: web.StreamResponse, identifier: str) -> None:
        headers = answer.headers
        headers["X-Request-ID"] = identifier
        headers["X-Content-Type-Options"] = "nosniff"
        headers.setdefault("Cache-Control", "no-store")


def manager_of(caller: Caller) -> str:
    """The field manager of a caller: each user owns the fields that the user sets."""
    name = "".join(each if each.isascii() and each.isprintable() else "_" for each in caller.identity.user)
    manager = f"dynadmin/{name}"
    if len(manager) <= _LONGEST_MANAGER and name == caller.identity.user:
        return manager
    digest = sha256(caller.identity.user.encode()).hexdigest()[:12]
    return f"{manager[: _LONGEST_MANAGER - 13]}-{digest}"


def _problem_of(error: web.HTTPException) -> ProblemError:
    if isinstance(error, web.HTTPNotFound):
        return ProblemError("not-found", "unknown path; /api/v1/openapi.json lists all paths")
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        return ProblemError("method-not-allowed", f"this path allows {allowed}", headers={"Allow": allowed})
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return ProblemError("too-large", "the body is larger than the limit")
    return ProblemError("bad-request", error.reason)
