"""The HTTP side, with limits for size, time and number of requests. `review` and `conversion` decide about the content.

A user's mistake is a 200 with a refusal, an invalid body is a 400 with a message. With 429 the API server's client
waits and retries within its time-out. A bug of the platform also refuses the request, and is logged.
"""

import asyncio
import re
import ssl
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

import structlog
from aiohttp import web
from dynamo_shared.api.conversion import NotConvertible, convert, marked, unreported
from dynamo_shared.api.embedded import Checker
from dynamo_shared.runtime.acceptor import AcceptedConnection
from dynamo_shared.runtime.endpoints import serving
from msgspec import Raw

from dynamo_admission.accepted import AcceptedObjects
from dynamo_admission.callers import Callers
from dynamo_admission.kinds import resource_of
from dynamo_admission.metrics import OTHER, AdmissionMetrics, ReviewLabels
from dynamo_admission.registration import CONVERT_PATH, path_of
from dynamo_admission.restore import MAX_POD
from dynamo_admission.review import SKIPPED, ReviewVerdict, Webhook, World, asks_adapters, review, scale_advice
from dynamo_admission.room import LARGE_BODY, MAX_CONVERSION, Busy, Room, Run
from dynamo_admission.wire import (
    AdmissionRequest,
    BadReview,
    ConversionRequest,
    ReviewStatus,
    admission_answer,
    conversion_answer,
    conversion_failure,
    encoded,
    read_admission,
    read_conversion,
)

#: The API server accepts 3 MiB from a user, and etcd stores 1.5 MiB; a review has both, and an envelope. Bytes.
MAX_BODY = 8 << 20
#: Time limit for the arrival of a body. Seconds.
READ_WITHIN = 10.0
#: The Retry-After of a 429. The API server's client retries within the webhook's time-out. Seconds.
RETRY_AFTER = 1
#: The API server lets connections idle for 90 s: it should close them, not this service. Seconds.
KEEP_ALIVE = 120.0
#: Time limit for open requests after the listener is closed; together with the longest drain it fits into
#: lifecycle.SHUTDOWN_WITHIN. Seconds.
FINISH_WITHIN = 8.0

#: Bytes of objects that are converted in one turn: a list of 64 MiB takes half a minute, and reviews wait for turns.
CONVERTED_AT_ONCE = 256 << 10

#: Open connections: an API server keeps one for each concurrent call.
MOST_OPEN = 1024

_RESTORE_PATH = path_of(Webhook.RESTORE)
_OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
_UID = re.compile(rb'"uid"\s*:\s*"([^"\\]{1,64})"')
_TOO_DEEP = "nested too deeply to check; Kubernetes objects have dozens of levels, not hundreds"

log = structlog.get_logger("dynamo.admission")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
FindAdapters = Callable[[AdmissionRequest], Awaitable[Mapping[str, int] | None]]
ReviewPod = Callable[[AdmissionRequest], Awaitable[ReviewVerdict]]


@dataclass(slots=True)
class ServerState:
    """The current facts for reviews. `draining` asks clients to send their next request to another replica."""

    world: World
    checker: Checker
    draining: bool = False


class ReviewServer:
    """Answers reviews. `find_adapters` returns the replicas of a graph's adapters by component; None if it cannot.

    `review_pod` checks pods that should start from a checkpoint.
    """

    def __init__(
        self,
        state: ServerState,
        metrics: AdmissionMetrics,
        *,
        max_in_flight: int,
        find_adapters: FindAdapters | None = None,
        review_pod: ReviewPod | None = None,
        callers: Callers | None = None,
    ) -> None:
        self._state = state
        self._metrics = metrics
        self._find_adapters = find_adapters
        self._review_pod = review_pod
        self._max_in_flight = max_in_flight
        self._room = Room(metrics.in_flight)
        self._callers = callers or Callers()
        self._accepted = AcceptedObjects()

    def app(self) -> web.Application:
        """The web application; serve it with TLS."""
        app = web.Application(client_max_size=MAX_BODY, middlewares=[self._closing, self._bounded])
        app.add_routes([web.post(path_of(each), self._handler(each)) for each in Webhook])
        app.add_routes([web.post(CONVERT_PATH, self._convert)])
        return app

    @web.middleware
    async def _closing(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        answer = await handler(request)
        if self._state.draining:
            answer.force_close()
        return answer

    @web.middleware
    async def _bounded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self._room.check(_client(request), self._most(request))
            return await handler(request)
        except web.HTTPException as error:
            return web.Response(status=error.status, text=f"{error.reason}\n", headers=_allow(error))
        except TimeoutError:
            return self._turn_away("slow", 408, f"the body took more than {READ_WITHIN:g} s")
        except BadReview as error:
            return self._turn_away("junk", 400, str(error))
        except Busy as error:
            return self._busy(str(error))

    def _most(self, request: web.Request) -> int:
        """How many requests may be in progress for this one to be accepted."""
        # A busy replica is healthy: it always answers its self test.
        if self._callers.is_self_test(request):
            return sys.maxsize
        # There are many pods, and their reviews wait for the API server: half of the room is reserved for other
        # reviews.
        return max(1, self._max_in_flight // 2) if request.path == _RESTORE_PATH else self._max_in_flight

    def _handler(self, webhook: Webhook) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            if refusal := self._callers.refusal(request):
                return self._turn_away("caller", 403, refusal)
            async with self._body(request) as body:
                if webhook is Webhook.RESTORE and len(body) > MAX_POD:
                    return self._turn_away(
                        "size", 413, f"a pod of more than {MAX_POD} bytes cannot start from a checkpoint"
                    )
                return await self._admit(webhook, body, _client(request))

        return handle

    @asynccontextmanager
    async def _body(self, request: web.Request) -> AsyncIterator[bytes]:
        """The body of a request, which is in progress from the arrival of its body to the end of the block.

        A client that sends slowly takes no room of others.
        """
        client, size = _client(request), request.client_max_size
        if request.content_length is not None and "Content-Encoding" not in request.headers:
            size = min(size, request.content_length)
        async with self._room.large_body(client, size) if size > LARGE_BODY else nullcontext():
            try:
                async with asyncio.timeout(READ_WITHIN):
                    body = await request.read()
            except web.RequestPayloadError as error:
                raise BadReview("the body's encoding does not match its headers") from error
            except web.HTTPRequestEntityTooLarge:
                self._metrics.turned_away.labels("size").inc()
                raise
            with self._room.place(client, self._most(request)):
                yield body

    async def _admit(self, webhook: Webhook, body: bytes, client: str) -> web.Response:
        started = time.perf_counter()
        try:
            question = read_admission(body)
        except RecursionError:
            return _json(admission_answer(_uid_in(body), ReviewStatus("Failure", _TOO_DEEP, "Invalid", 422)))
        # Pods are not large, and their reviews wait for the API server.
        size = 0 if webhook is Webhook.RESTORE else len(body)
        async with self._room.turn(client, size, lambda: question.namespace) as run:
            verdict, result = await self._judge(webhook, question, run)
        content = admission_answer(question.uid, verdict.refusal, patch=verdict.patch, warnings=verdict.warnings)
        asked = _asked(webhook, question)
        self._metrics.answered(asked, result, time.perf_counter() - started)
        if verdict.refusal is not None:
            self._metrics.denials.labels(asked.resource_type, asked.operation, verdict.refusal.reason).inc()
        return _json(content)

    async def _judge(self, webhook: Webhook, asked: AdmissionRequest, run: Run) -> tuple[ReviewVerdict, str]:
        """A verdict, and its label in metrics. Only now are the objects decoded."""
        question = asked
        try:
            question = await run(asked.decoded)
            if webhook is Webhook.SCALE:
                verdict = scale_advice(question)
            elif webhook is Webhook.RESTORE:
                held = question.namespace in self._state.world.held
                verdict = await self._review_pod(question) if self._review_pod and not held else SKIPPED
            else:
                world, asks = self._state.world, asks_adapters(question, self._state.world)
                adapters = await self._find_adapters(question) if asks and self._find_adapters else None
                checker = self._state.checker
                verdict = await run(
                    lambda: review(question, webhook, world, checker, adapters, accepted=self._accepted)
                )
        except RecursionError:
            return ReviewVerdict(ReviewStatus("Failure", _TOO_DEEP, "Invalid", 422)), "denied"
        except BadReview:
            raise
        except Exception:
            log.exception("not judged", webhook=webhook, uid=question.uid, kind=question.kind.kind, name=question.name)
            if webhook is Webhook.RESTORE:
                # Like a service that does not answer: a bug here must not prevent a pod from starting.
                return SKIPPED, "error"
            message = f"the admission service failed on this object; its log has the reason under uid {question.uid}"
            return ReviewVerdict(ReviewStatus("Failure", message, "InternalError", 500)), "error"
        if verdict.refusal is not None:
            return verdict, "denied"
        return verdict, "skipped" if verdict.skipped else "allowed"

    async def _convert(self, request: web.Request) -> web.Response:
        async with self._body(request.clone(client_max_size=MAX_CONVERSION)) as body:
            started = time.perf_counter()
            try:
                asked = read_conversion(body)
            except RecursionError:
                return _json(conversion_failure(_uid_in(body), _TOO_DEEP))
            content = await self._converted(asked, len(body), _client(request))
            self._metrics.conversion_seconds.observe(time.perf_counter() - started)
            return _json(content)

    async def _converted(self, asked: ConversionRequest, size: int, client: str) -> bytes:
        desired, kind = asked.desired_api_version, asked.kind()
        resource = resource_of(*_split(desired), kind)
        plural, version = (resource.plural, resource.version) if resource else (OTHER, OTHER)
        try:
            objects: list[Raw] = []
            for part in asked.parts(CONVERTED_AT_ONCE):
                async with self._room.turn(client, size, asked.namespace) as run:
                    objects += await run(partial(_converted, part))
        except (NotConvertible, RecursionError) as error:
            self._metrics.converted(plural, version, "failed", len(asked.objects))
            return conversion_failure(asked.uid, _TOO_DEEP if isinstance(error, RecursionError) else str(error))
        except (BadReview, Busy):
            raise
        except Exception:
            log.exception("not converted", uid=asked.uid, kind=kind, to=desired)
            self._metrics.converted(plural, version, "failed", len(asked.objects))
            message = f"the admission service failed to convert; its log has the reason under uid {asked.uid}"
            return conversion_failure(asked.uid, message)
        self._metrics.converted(plural, version, "converted", len(objects))
        return conversion_answer(asked.uid, objects)

    def _busy(self, message: str) -> web.Response:
        busy = self._turn_away("busy", 429, message)
        busy.headers["Retry-After"] = str(RETRY_AFTER)
        return busy

    def _turn_away(self, reason: str, status: int, message: str) -> web.Response:
        self._metrics.turned_away.labels(reason).inc()
        return web.Response(status=status, text=f"{message}\n")


def _client(request: web.Request) -> str:
    """The address that the request came from."""
    return request.remote or ""


def _converted(asked: ConversionRequest) -> list[Raw]:
    """The converted objects. Only one of them is decoded at a time."""
    desired = asked.desired_api_version
    return [encoded(marked(obj, convert(unreported(obj), desired))) for obj in asked.decoded()]


def _asked(webhook: Webhook, question: AdmissionRequest) -> ReviewLabels:
    kind = question.kind
    resource = resource_of(kind.group, kind.version, kind.kind)
    operation = question.operation if question.operation in _OPERATIONS else OTHER
    return ReviewLabels(
        webhook, resource.plural if resource else OTHER, resource.version if resource else OTHER, operation
    )


def _json(content: bytes) -> web.Response:
    return web.Response(body=content, content_type="application/json")


def _allow(error: web.HTTPException) -> dict[str, str]:
    return {name: error.headers[name] for name in ("Allow",) if name in error.headers}


def _split(api_version: str) -> tuple[str, str]:
    group, _, version = api_version.rpartition("/")
    return group, version


def _uid_in(body: bytes) -> str:
    """The uid of an unreadable review: the API server writes the uid before the objects."""
    match = _UID.search(body)
    return match[1].decode("ascii", "replace") if match else ""


def listening(app: web.Application, host: str, port: int, tls: ssl.SSLContext) -> AbstractAsyncContextManager[int]:
    """Serve while the block runs; yields the port. At the end the listener closes, then open requests finish.

    OSError if the port is taken.
    """
    connection = partial(AcceptedConnection, keepalive_timeout=KEEP_ALIVE)
    return serving(app, host, port, tls, connection, most=MOST_OPEN, finish_within=FINISH_WITHIN)
