"""A chat with a graph's model: through the API server to the Service of its frontend, with the caller's rights.

The caller needs the right that Kubernetes requires for calling a Service through the API server: `create` on
`services/proxy` for that Service. So this service needs no network access to tenants' pods, and the audit log records
the call.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from dynamo_shared.api.component_names import frontend_service
from dynamo_shared.api.registry import ports
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, SERVICES, ObjectKey
from dynamo_shared.kube import KubeError

from dynamo_dynadmin.api.collection_reader import CollectionReader
from dynamo_dynadmin.api.completion import RESERVED, Completion, Garbled, chunk_of, models_of, request
from dynamo_dynadmin.api.models import ChatBody
from dynamo_dynadmin.api.turns import ConcurrencyLimit
from dynamo_dynadmin.deploy.problems import FieldProblem, pointer
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.problems import ProblemError, invalid, of_kube, validated
from dynamo_dynadmin.http.pulse import Pulse
from dynamo_dynadmin.http.streaming import Stream, StreamEnded, Streams
from dynamo_dynadmin.identity.access import ResourceAttributes

#: Seconds without output after which an engine counts as failed.
SILENCE = 120.0
#: Timeout for the list of models. Seconds.
_MODELS_WITHIN = 10.0
_LARGEST_LIST = 1 << 20
#: All messages of a chat together. Characters.
LONGEST_CHAT = 1 << 20
#: One answer, and one line of it. Bytes.
LARGEST_ANSWER, LONGEST_LINE = 16 << 20, 1 << 20
#: Concurrent chats of one user, and of all users of a replica. Each may take minutes, and memory for its answer.
OF_A_USER, IN_ALL = 16, 128
#: Why there is no answer in a local cluster.
SIMULATED = "the pods of this graph are on simulated nodes, which run no containers: nothing can answer a chat"
_FAILURES = ("bad-request", "not-found", "unavailable")


@dataclass(eq=False)
class Chat:
    """Chats with graphs. `within` limits the time of an answer; seconds. `simulated` returns whether all pods of a
    graph are simulated.
    """

    reading: CollectionReader
    streams: Streams
    within: float
    simulated: Callable[[Call], Awaitable[bool]]
    _chats: ConcurrencyLimit = field(
        default_factory=lambda: ConcurrencyLimit("chats", of_a_user=OF_A_USER, total=IN_ALL), init=False
    )

    async def models(self, call: Call) -> web.StreamResponse:
        """The Service that answers, and the models that it serves now."""
        service = await self._service(call)
        await self.reading.require(call, _act("get", service))
        async with self._explained(call):
            return call.answer({"service": service.name, "models": await _served(call, service)})

    async def chat(self, call: Call) -> web.StreamResponse:
        """Answer a chat: as server-sent events if the caller accepts them, otherwise as one response."""
        body = _body(await call.object())
        service = await self._service(call)
        act = _act("create", service)
        await self.reading.require(call, act)
        with self._chats.taken(call.caller.limit_key):
            async with self._explained(call):
                return await self._answered(call, body, service, act)

    @asynccontextmanager
    async def _explained(self, call: Call) -> AsyncIterator[None]:
        """If no container of the graph runs, replaces a failure of the frontend by this cause."""
        try:
            yield
        except ProblemError as problem:
            if problem.kind in _FAILURES and await self.simulated(call):
                raise ProblemError("conflict", SIMULATED) from problem
            raise

    async def _answered(
        self, call: Call, body: ChatBody, service: ObjectKey, act: ResourceAttributes
    ) -> web.StreamResponse:
        model = body.model or await self._only_model(call, service)
        sent = request(body, model)
        if "text/event-stream" not in call.request.headers.get("Accept", ""):
            return await self._whole(call, service, sent, model)
        async with self.streams.opened(call, [act]) as stream:
            try:
                async with asyncio.timeout(self.within):
                    await self._streamed(call, service, sent, stream, model)
            except TimeoutError:
                raise StreamEnded("failed", f"no complete answer within {self.within:g} s") from None
            except (Garbled, KubeError) as error:
                detail = SIMULATED if await self.simulated(call) else _refused(error).detail
                raise StreamEnded("failed", detail) from error
        return stream.response

    async def _whole(self, call: Call, service: ObjectKey, sent: bytes, model: str) -> web.StreamResponse:
        started, completion = time.monotonic(), Completion(model)
        try:
            async with asyncio.timeout(self.within):
                async with aclosing(_lines(call, service, sent)) as lines:
                    async for line in lines:
                        if (chunk := chunk_of(line)) is not None:
                            completion.take(chunk, time.monotonic() - started)
        except TimeoutError:
            raise ProblemError("unavailable", f"no complete answer within {self.within:g} s") from None
        except (Garbled, KubeError) as error:
            raise _refused(error) from error
        texts = {"text": completion.text.getvalue(), "reasoning": completion.reasoning.getvalue()}
        return call.answer({**texts, **completion.summary(time.monotonic() - started)})

    async def _streamed(self, call: Call, service: ObjectKey, sent: bytes, stream: Stream, model: str) -> None:
        started, completion = time.monotonic(), Completion(model)
        async with Pulse(_lines(call, service, sent), stream) as pulse:
            async for line in pulse:
                at = time.monotonic() - started
                chunk = chunk_of(line) if line is not None else None
                if chunk is not None and (brought := completion.take(chunk, at)):
                    await stream.send("delta", {**brought, "atMs": round(at * 1000, 2)})
        await stream.send("end", completion.summary(time.monotonic() - started))

    async def _service(self, call: Call) -> ObjectKey:
        """The Service of the graph's frontend. ProblemError if it has no Service yet."""
        graph = await call.kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(call.namespace, call.name))
        listed = graph["spec"].get("components") or []
        frontend = next((each["name"] for each in listed if each.get("type") == "frontend"), None)
        if frontend is None:
            raise ProblemError("conflict", "this graph has no component of type frontend, which answers chats")
        return ObjectKey(call.namespace, frontend_service(call.name, frontend))

    async def _only_model(self, call: Call, service: ObjectKey) -> str:
        if not await self.reading.may(call, _act("get", service)):
            detail = "required, because you may not `get` services/proxy, which lists the frontend's models"
            raise invalid([FieldProblem("/model", detail)])
        served = await _served(call, service)
        if not served:
            raise ProblemError("unavailable", "the frontend serves no model yet", retry_after=5)
        if len(served) > 1:
            detail = f"required, because the frontend serves several models: {', '.join(served[:20])}"
            raise invalid([FieldProblem("/model", detail)])
        return served[0]


def _act(verb: str, service: ObjectKey) -> ResourceAttributes:
    """For this subresource, RBAC treats a Service's port as part of its name, as in the path."""
    return ResourceAttributes(verb, SERVICES, service.namespace, f"{service.name}:{ports.HTTP.number}", "proxy")


async def _served(call: Call, service: ObjectKey) -> list[str]:
    try:
        async with (
            asyncio.timeout(_MODELS_WITHIN),
            call.kube.service_proxy(service, ports.HTTP.number, "/v1/models", silence=_MODELS_WITHIN) as content,
        ):
            listed = bytearray()
            while len(listed) < _LARGEST_LIST and (more := await content.read(_LARGEST_LIST - len(listed))):
                listed += more
            return models_of(bytes(listed))
    except TimeoutError:
        raise ProblemError("unavailable", "the frontend does not answer", retry_after=5) from None
    except (Garbled, KubeError) as error:
        raise _refused(error) from error


async def _lines(call: Call, service: ObjectKey, sent: bytes) -> AsyncGenerator[bytes, None]:
    """Lines of the frontend's answer. Raises KubeError and Garbled."""
    size, rest = 0, bytearray()
    proxied = call.kube.service_proxy(service, ports.HTTP.number, "/v1/chat/completions", body=sent, silence=SILENCE)
    async with proxied as content:
        async for chunk in content.iter_any():
            size += len(chunk)
            first, *others = chunk.split(b"\n")
            rest += first
            for other in others:
                yield bytes(rest)
                rest = bytearray(other)
            if size > LARGEST_ANSWER or len(rest) > LONGEST_LINE:
                raise Garbled("the frontend's answer, or a line of it, is too long")
    yield bytes(rest)


def _refused(error: Exception) -> ProblemError:
    """Why there is no answer: the API server's reason, or the frontend's message."""
    if isinstance(error, Garbled):
        return ProblemError("unavailable", str(error))
    assert isinstance(error, KubeError)
    if error.reason == "ServiceUnavailable":
        # The API server answers, and reaches no pod of the Service.
        return ProblemError("unavailable", f"the frontend does not answer: {error.message}", retry_after=5)
    if error.reason:
        # An answer of the frontend has no reason: it has the frontend's own text, even with a status of 403 or 500.
        return of_kube(error)
    kind = "not-found" if error.status == 404 else "bad-request" if 400 <= error.status < 500 else "unavailable"
    return ProblemError(kind, f"the frontend answers {error.status}: {error.message[:500]}")


def _body(sent: dict[str, Any]) -> ChatBody:
    body = validated(ChatBody, sent)
    errors = [
        FieldProblem(pointer(("parameters", name)), "not allowed: this API sets this parameter")
        for name in RESERVED
        if name in body.parameters
    ]
    if sum(len(each.content) for each in body.messages) > LONGEST_CHAT:
        errors.append(FieldProblem("/messages", f"together longer than {LONGEST_CHAT} characters"))
    if errors:
        raise invalid(errors)
    return body
