"""The route table: every operation of the API, in the order of the document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from aiohttp import web

from dynamo_dynadmin.api.acting import Acting
from dynamo_dynadmin.api.chat import Chat
from dynamo_dynadmin.api.cluster import Cluster
from dynamo_dynadmin.api.decisions import DEFAULT_LIMIT as DECISIONS
from dynamo_dynadmin.api.decisions import MOST as MOST_DECISIONS
from dynamo_dynadmin.api.decisions import Decisions
from dynamo_dynadmin.api.deploying import Deploying
from dynamo_dynadmin.api.estimating import Estimating
from dynamo_dynadmin.api.events import Events
from dynamo_dynadmin.api.kinds import ADAPTERS, DEPLOYMENTS, KINDS, REQUESTS, Kind
from dynamo_dynadmin.api.logs import Logs
from dynamo_dynadmin.api.looking import Looking
from dynamo_dynadmin.api.reading import DEFAULT_LIMIT, MOST, Reading
from dynamo_dynadmin.api.sessions import SessionPages
from dynamo_dynadmin.api.writing import Writing
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.routes import (
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    SSE,
    YAML,
    Answer,
    Handler,
    Parameter,
    Route,
    choice,
    flag,
    number,
)

PREFIX = "/api/v1"
IN_NAMESPACE = f"{PREFIX}/namespaces/{{namespace}}"
_WATCH = flag(
    "watch", "Server-sent events: ADDED, MODIFIED and DELETED with objects, `synced`, `resync`, `unauthorized`."
)
_DRY_RUN = flag("dryRun", "Let the API server and admission check it, and store nothing.")
_SELECTOR = Parameter("labelSelector", "Labels, as Kubernetes writes selectors.")
_OBJECT = {JSON: "KubernetesObject"}
_BODY = {JSON: "KubernetesObject", YAML: "KubernetesObject"}
_CHANGES = ("invalid", "not-found", "stale", "precondition-required", "managed-elsewhere", "conflict")


class Topics:
    """What answers the operations."""

    def __init__(
        self,
        *,
        reading: Reading,
        writing: Writing,
        looking: Looking,
        events: Events,
        logs: Logs,
        chat: Chat,
        decisions: Decisions,
        acting: Acting,
        cluster: Cluster,
        deploying: Deploying,
        estimating: Estimating,
        sessions: SessionPages,
    ) -> None:
        self.reading, self.writing, self.looking, self.logs = reading, writing, looking, logs
        self.acting, self.cluster, self.deploying, self.sessions = acting, cluster, deploying, sessions
        self.estimating, self.events, self.chat, self.decisions = estimating, events, chat, decisions


def table(topics: Topics, document: Callable[[], bytes]) -> tuple[Route, ...]:
    """Every route; `document` gives the OpenAPI document, which is made of them."""
    return (
        *_about(topics, document),
        *_sessions(topics),
        *(route for kind in KINDS for route in _collection(topics, kind)),
        *_actions(topics),
        *_chat(topics),
        *_deploy(topics),
    )


def described() -> tuple[Route, ...]:
    """The table with nothing behind it, for documents."""
    nothing: Any = _Nothing()
    return table(nothing, lambda: b"")


class _Nothing:
    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_: Any) -> Any:
        raise NotImplementedError


def _about(topics: Topics, document: Callable[[], bytes]) -> Iterator[Route]:
    async def openapi(call: Call) -> web.StreamResponse:
        return call.answer(document())

    yield _get(f"{PREFIX}/openapi.json", "getOpenApi", "This document.", "about", openapi, schema="Any", public=True)
    yield _get(
        f"{PREFIX}/namespaces",
        "listNamespaces",
        "Namespaces in which the caller may list graph deployments.",
        "about",
        topics.cluster.namespaces,
        schema="Namespaces",
    )
    yield _get(
        f"{PREFIX}/capabilities",
        "getCapabilities",
        "Served versions, orchestrators, and GPUs by kind and node.",
        "about",
        topics.cluster.capabilities,
        schema="Capabilities",
    )
    yield _get(f"{PREFIX}/me", "getMe", "Who the caller is.", "about", topics.cluster.me, schema="Me")
    yield _get(
        f"{IN_NAMESPACE}/me/access",
        "getAccess",
        "What the caller may do in a namespace.",
        "about",
        topics.cluster.access,
        schema="Rights",
        problems=("not-found",),
    )


def _sessions(topics: Topics) -> Iterator[Route]:
    yield _get(
        f"{PREFIX}/session/ways",
        "listSessionWays",
        "How a browser session can be begun.",
        "session",
        topics.sessions.ways,
        schema="SessionWays",
        public=True,
    )
    yield Route(
        method="GET",
        path=f"{PREFIX}/session/login",
        operation="logIn",
        summary="Sends the browser to the issuer, to log in (authorization code flow with PKCE).",
        tag="session",
        handle=topics.sessions.login,
        answers={303: Answer("To the issuer.", {}, ("Location", "Set-Cookie"))},
        problems=("not-found",),
        query=(Parameter("returnTo", "Path of the page to come back to."),),
        public=True,
    )
    yield Route(
        method="GET",
        path=f"{PREFIX}/session/callback",
        operation="finishLogIn",
        summary="Where the issuer sends the browser back: begins the session.",
        tag="session",
        handle=topics.sessions.callback,
        answers={303: Answer("To the page.", {}, ("Location", "Set-Cookie"))},
        problems=("not-found", "unidentified", "invalid"),
        query=tuple(
            Parameter(name, "As the issuer says it.") for name in ("code", "state", "iss", "error", "error_description")
        ),
        public=True,
        lenient=True,
    )
    yield Route(
        method="POST",
        path=f"{PREFIX}/session",
        operation="beginSession",
        summary="Begin a browser session with a token; it becomes a cookie that scripts cannot read.",
        tag="session",
        handle=topics.sessions.begin,
        answers={201: Answer("The session.", {JSON: "SessionAnswer"}, ("Set-Cookie",))},
        problems=("invalid",),
        body={JSON: "TokenBody"},
        public=True,
    )
    yield _get(
        f"{PREFIX}/session",
        "getSession",
        "The session of this browser, with its CSRF token.",
        "session",
        topics.sessions.show,
        schema="SessionAnswer",
        problems=("not-found",),
    )
    yield Route(
        method="DELETE",
        path=f"{PREFIX}/session",
        operation="endSession",
        summary="End the session of this browser.",
        tag="session",
        handle=topics.sessions.end,
        answers={204: Answer("Ended.", {}, ("Set-Cookie",))},
    )


def _collection(topics: Topics, kind: Kind) -> Iterator[Route]:
    many, one = f"{IN_NAMESPACE}/{kind.collection}", f"{IN_NAMESPACE}/{kind.collection}/{{name}}"
    tag = kind.collection
    plural = f"{kind.operation}s"

    def of(handle: Callable[[Call, Kind], Awaitable[web.StreamResponse]]) -> Handler:
        async def handler(call: Call) -> web.StreamResponse:
            return await handle(call, kind)

        return handler

    look = partial(_get, tag=tag, problems=("not-found",))
    yield Route(
        method="GET",
        path=many,
        operation=f"list{plural}",
        summary=f"A page of the namespace's {kind.word}s, or a stream of them.",
        tag=tag,
        handle=of(topics.reading.list_of),
        answers={200: Answer("The page.", {JSON: "ObjectList", SSE: ""})},
        problems=("not-found",),
        query=(
            number("limit", "Objects of a page at most.", least=1, most=MOST, default=DEFAULT_LIMIT),
            Parameter("continue", "What the page before said."),
            _SELECTOR,
            _WATCH,
        ),
        streams=True,
    )
    yield Route(
        method="GET",
        path=one,
        operation=f"get{kind.operation}",
        summary=f"One {kind.word}, or a stream of it.",
        tag=tag,
        handle=of(topics.writing.read),
        answers={
            200: Answer("The object.", {**_OBJECT, SSE: ""}, ("ETag",)),
            304: Answer("It is as If-None-Match says.", {}, ("ETag",)),
        },
        problems=("not-found",),
        query=(_WATCH, _SELECTOR),
        streams=True,
    )
    if kind.writable:
        yield from _writes(topics, kind, of)
    yield look(
        f"{one}/status", f"get{kind.operation}Status", "How it is.", handle=of(topics.looking.status), schema="Status"
    )
    yield Route(
        method="GET",
        path=f"{one}/manifest",
        operation=f"get{kind.operation}Manifest",
        summary="What a user would apply.",
        tag=tag,
        handle=of(topics.looking.manifest),
        answers={200: Answer("The manifest.", _BODY)},
        problems=("not-found",),
        query=(choice("format", "JSON or YAML.", "json", "yaml", default="json"),),
    )
    yield Route(
        method="GET",
        path=f"{one}/events",
        operation=f"list{kind.operation}Events",
        summary="Events of it and of all that it owns, newest first; with `watch` as server-sent events `event`, `synced`, "
        "`resync`, `unauthorized`.",
        tag=tag,
        handle=of(topics.events.events),
        answers={200: Answer("Events.", {JSON: "Events", SSE: ""})},
        problems=("not-found",),
        query=(
            number("limit", "Events at most; of a stream, of those that there are.", least=1, most=2000, default=200),
            flag("watch", "Go on with new events, oldest first."),
        ),
        streams=True,
    )
    yield look(
        f"{one}/tree",
        f"get{kind.operation}Tree",
        "It and all that it owns.",
        handle=of(topics.looking.tree),
        schema="Tree",
    )
    if kind.has_pods:
        yield look(
            f"{one}/pods", f"list{kind.operation}Pods", "Its pods.", handle=of(topics.looking.pods), schema="Pods"
        )
        yield Route(
            method="GET",
            path=f"{one}/logs",
            operation=f"get{kind.operation}Logs",
            summary="Logs of its pods, merged; with `follow` as server-sent events `log`, `notice`, `end`, `unauthorized`.",
            tag=tag,
            handle=of(topics.logs.logs),
            answers={200: Answer("Lines.", {JSON: "LogLines", SSE: ""})},
            problems=("not-found",),
            query=(
                flag("follow", "Go on with new lines."),
                Parameter("component", "Pods of this component."),
                Parameter("pod", "This pod."),
                Parameter("container", "Containers of this name."),
                number("tail", "Lines of each container, from its end.", least=0, most=10_000, default=1000),
                number("sinceSeconds", "Lines that are not older.", least=1),
                flag("previous", "Of the containers before these."),
            ),
            streams=True,
        )


def _writes(
    topics: Topics, kind: Kind, of: Callable[[Callable[[Call, Kind], Awaitable[web.StreamResponse]]], Handler]
) -> Iterator[Route]:
    many, one = f"{IN_NAMESPACE}/{kind.collection}", f"{IN_NAMESPACE}/{kind.collection}/{{name}}"
    changed = {200: Answer("The object as it is stored, or would be.", _OBJECT, ("ETag",))}
    yield Route(
        method="POST",
        path=many,
        operation=f"create{kind.operation}",
        summary=f"Create a {kind.word}.",
        tag=kind.collection,
        handle=of(topics.writing.create),
        answers={
            201: Answer("Created.", _OBJECT, ("ETag", "Location")),
            200: Answer("Dry run, or created by this request before.", _OBJECT, ("ETag", "Location")),
        },
        problems=("invalid", "not-found", "already-exists", "key-reused"),
        query=(_DRY_RUN,),
        body=_BODY,
        idempotent=True,
    )
    yield Route(
        method="PUT",
        path=one,
        operation=f"replace{kind.operation}",
        summary="Put another object in its place.",
        tag=kind.collection,
        handle=of(topics.writing.replace),
        answers=changed,
        problems=_CHANGES,
        query=(_DRY_RUN,),
        body=_BODY,
        conditional=True,
    )
    yield Route(
        method="PATCH",
        path=one,
        operation=f"patch{kind.operation}",
        summary="Change fields of it.",
        tag=kind.collection,
        handle=of(topics.writing.patch),
        answers=changed,
        problems=_CHANGES,
        query=(_DRY_RUN,),
        body={MERGE_PATCH: "Any", JSON_PATCH: "Any"},
        conditional=True,
    )
    yield Route(
        method="DELETE",
        path=one,
        operation=f"delete{kind.operation}",
        summary="Delete it.",
        tag=kind.collection,
        handle=of(topics.writing.delete),
        answers={204: Answer("Deleted, or being deleted.")},
        problems=_CHANGES,
        query=(
            _DRY_RUN,
            choice(
                "propagation",
                "What becomes of what it owns.",
                "Background",
                "Foreground",
                "Orphan",
                default="Background",
            ),
        ),
        conditional=True,
    )


def _actions(topics: Topics) -> Iterator[Route]:
    graph, request = (
        f"{IN_NAMESPACE}/{DEPLOYMENTS.collection}/{{name}}",
        f"{IN_NAMESPACE}/{REQUESTS.collection}/{{name}}",
    )
    post = partial(_post, problems=("invalid", "not-found", "stale", "conflict", "managed-elsewhere", "owned-replicas"))
    yield post(
        f"{graph}/scale",
        "scaleDeployment",
        "Scale a component.",
        DEPLOYMENTS.collection,
        topics.acting.scale,
        body="ScaleBody",
        schema="Scaled",
    )
    yield post(
        f"{graph}/restart",
        "restartDeployment",
        "Restart the pods.",
        DEPLOYMENTS.collection,
        topics.acting.restart,
        body="RestartBody",
        schema="Restarted",
    )
    yield post(
        f"{IN_NAMESPACE}/{ADAPTERS.collection}/{{name}}/scale",
        "scaleAdapter",
        "Scale it.",
        ADAPTERS.collection,
        topics.acting.scale_adapter,
        body="AdapterScaleBody",
        schema="Scaled",
    )
    yield _get(
        f"{request}/candidates",
        "listRequestCandidates",
        "Points that profiling found.",
        REQUESTS.collection,
        topics.acting.candidates,
        schema="Candidates",
        problems=("not-found",),
    )
    yield Route(
        method="POST",
        path=f"{request}/promote",
        operation="promoteRequest",
        summary="Deploy one of the points.",
        tag=REQUESTS.collection,
        handle=topics.acting.promote,
        answers={
            201: Answer("Created.", _OBJECT, ("ETag", "Location")),
            200: Answer("Dry run, or the request's graph was changed.", _OBJECT, ("ETag",)),
        },
        problems=("invalid", "not-found", "conflict", "already-exists", "key-reused", "stale"),
        query=(_DRY_RUN,),
        body={JSON: "PromoteBody"},
        idempotent=True,
    )


def _chat(topics: Topics) -> Iterator[Route]:
    graph = f"{IN_NAMESPACE}/{DEPLOYMENTS.collection}/{{name}}"
    yield _get(
        f"{graph}/chat",
        "listChatModels",
        "Which Service answers chats, and the models that it serves now. Needs `get` of services/proxy.",
        DEPLOYMENTS.collection,
        topics.chat.models,
        schema="ChatModels",
        problems=("not-found", "conflict"),
    )
    yield Route(
        method="POST",
        path=f"{graph}/chat",
        operation="chat",
        summary="The answer to a chat, with its times; as server-sent events `delta`, `end`, `failed`, `unauthorized`. "
        "Needs `create` of services/proxy.",
        tag=DEPLOYMENTS.collection,
        handle=topics.chat.chat,
        answers={200: Answer("The answer.", {JSON: "ChatAnswer", SSE: ""})},
        problems=("invalid", "not-found", "conflict"),
        body={JSON: "ChatBody"},
    )
    yield Route(
        method="GET",
        path=f"{graph}/decisions",
        operation="listDecisions",
        summary="What planner and scaler decided about its replicas, and why; with `watch` as server-sent events `decision`, "
        "`synced`, `resync`, `unauthorized`.",
        tag=DEPLOYMENTS.collection,
        handle=topics.decisions.decisions,
        answers={200: Answer("Decisions of the last seven days.", {JSON: "Decisions", SSE: ""})},
        problems=("not-found",),
        query=(
            number(
                "limit",
                "The last so many; of a stream, of those that there are.",
                least=1,
                most=MOST_DECISIONS,
                default=DECISIONS,
            ),
            flag("watch", "Go on with new decisions."),
        ),
        streams=True,
    )


def _deploy(topics: Topics) -> Iterator[Route]:
    yield Route(
        method="POST",
        path=f"{IN_NAMESPACE}/deploy",
        operation="deploy",
        summary="What a user wants deployed becomes a graph deployment or a deployment request.",
        tag="deploy",
        handle=topics.deploying.deploy,
        answers={
            201: Answer("Created.", {JSON: "Deployed"}, ("ETag", "Location")),
            200: Answer("Dry run, or created by this request before.", {JSON: "Deployed"}),
        },
        problems=("invalid", "not-found", "already-exists", "key-reused"),
        query=(
            choice(
                "dryRun", "`client`: only translate. `server`: let the API server check it, too.", "client", "server"
            ),
        ),
        body={JSON: "DeployIntent", YAML: "DeployIntent"},
        idempotent=True,
    )
    yield Route(
        method="POST",
        path=f"{IN_NAMESPACE}/estimate",
        operation="estimate",
        summary="What an intent is expected to do, simulated; as server-sent events `progress`, `estimate`, `failed`, `end`.",
        tag="deploy",
        handle=topics.estimating.estimate,
        answers={200: Answer("The estimate.", {JSON: "Estimate", SSE: ""})},
        problems=("invalid", "not-found"),
        body={JSON: "DeployIntent", YAML: "DeployIntent"},
    )


def _get(
    path: str,
    operation: str,
    summary: str,
    tag: str,
    handle: Handler,
    *,
    schema: str,
    problems: tuple[str, ...] = (),
    query: tuple[Parameter, ...] = (),
    public: bool = False,
) -> Route:
    return Route(
        method="GET",
        path=path,
        operation=operation,
        summary=summary,
        tag=tag,
        handle=handle,
        answers={200: Answer(summary, {JSON: schema})},
        problems=problems,
        query=query,
        public=public,
    )


def _post(
    path: str,
    operation: str,
    summary: str,
    tag: str,
    handle: Handler,
    *,
    body: str,
    schema: str,
    problems: tuple[str, ...],
) -> Route:
    return Route(
        method="POST",
        path=path,
        operation=operation,
        summary=summary,
        tag=tag,
        handle=handle,
        answers={200: Answer("Done.", {JSON: schema})},
        problems=problems,
        query=(_DRY_RUN,),
        body={JSON: body},
    )
