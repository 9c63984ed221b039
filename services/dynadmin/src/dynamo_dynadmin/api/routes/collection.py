"""Routes that all kinds of objects have: lists, objects, and their details."""

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TypeAlias

from aiohttp import web

from dynamo_dynadmin.api.collection_reader import DEFAULT_LIMIT, MOST
from dynamo_dynadmin.api.kinds import Kind
from dynamo_dynadmin.api.object_writer import ObjectWriter
from dynamo_dynadmin.api.routes.section import (
    DRY_RUN,
    IN_NAMESPACE,
    OBJECT,
    OBJECT_BODY,
    OBJECT_OR_YAML,
    SELECTOR,
    RouteSection,
    Topics,
    created,
    streamed,
)
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.routes import (
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    SSE,
    Handler,
    Parameter,
    ResponseSpec,
    Route,
    choice,
    flag,
    number,
)

_WATCH = flag(
    "watch",
    "Server-sent events: ADDED, MODIFIED and DELETED with objects, `synced`, `resync`, `unauthorized`, `error`.",
)
_CHANGES = ("invalid", "not-found", "stale", "precondition-required", "managed-elsewhere", "conflict")
_PROPAGATION = choice(
    "propagation",
    "What happens to the objects that it owns.",
    "Background",
    "Foreground",
    "Orphan",
    default="Background",
)
_OfKind: TypeAlias = Callable[[Call, Kind], Awaitable[web.StreamResponse]]


def _of(kind: Kind, handle: _OfKind) -> Handler:
    async def handler(call: Call) -> web.StreamResponse:
        return await handle(call, kind)

    return handler


def collection(kind: Kind, topics: Topics) -> Iterator[Route]:
    """All routes of a kind, except those that only this kind has."""
    of = partial(_of, kind)
    route, name = RouteSection(kind.collection, f"{IN_NAMESPACE}/{kind.collection}"), kind.operation
    yield route(
        "GET ",
        f"list{name}s",
        f"A page of the namespace's {kind.word}s, or a stream of them.",
        of(topics.reading.list_of),
        streamed("The page.", {JSON: "ObjectList"}),
        "not-found",
        query=(
            number("limit", "Maximum number of objects in a page.", least=1, most=MOST, default=DEFAULT_LIMIT),
            Parameter("continue", "Token of the previous page."),
            SELECTOR,
            _WATCH,
        ),
        streams=True,
    )
    yield route(
        "GET /{name}",
        f"get{name}",
        f"One {kind.word}, or a stream of it.",
        of(topics.writing.read),
        {
            200: ResponseSpec("The object.", {**OBJECT, SSE: ""}, ("ETag",)),
            304: ResponseSpec("Unchanged since the version in If-None-Match.", {}, ("ETag",)),
        },
        "not-found",
        query=(_WATCH, SELECTOR),
        streams=True,
    )
    if kind.writable:
        yield from _writes(kind, route, topics.writing)
    yield route(
        "GET /{name}/status",
        f"get{name}Status",
        "Its state and conditions.",
        of(topics.details.status),
        "Status",
        "not-found",
    )
    yield route(
        "GET /{name}/manifest",
        f"get{name}Manifest",
        "The manifest that a user would apply.",
        of(topics.details.manifest),
        {200: ResponseSpec("The manifest.", OBJECT_OR_YAML)},
        "not-found",
        query=(choice("format", "JSON or YAML.", "json", "yaml", default="json"),),
    )
    yield route(
        "GET /{name}/events",
        f"list{name}Events",
        "Events of the object and of all objects that it owns, newest first; with `watch` as server-sent events `event`, "
        "`synced`, `resync`, `unauthorized`, `error`.",
        of(topics.events.events),
        streamed("Events.", {JSON: "Events"}),
        *("not-found", "expired"),
        query=(
            number(
                "limit", "Maximum number of events; in a stream, of existing events.", least=1, most=2000, default=200
            ),
            flag("watch", "Stream new events, oldest first."),
        ),
        streams=True,
    )
    yield route(
        "GET /{name}/tree",
        f"get{name}Tree",
        "The object and all objects that it owns.",
        of(topics.details.tree),
        "Tree",
        "not-found",
    )
    if kind.has_pods:
        yield route("GET /{name}/pods", f"list{name}Pods", "Its pods.", of(topics.details.pods), "Pods", "not-found")
        yield route(
            "GET /{name}/logs",
            f"get{name}Logs",
            "Logs of its pods, merged; with `follow` as server-sent events `log`, `notice`, `end`, `unauthorized`, "
            "`error`.",
            of(topics.logs.logs),
            streamed("Lines.", {JSON: "LogLines"}),
            "not-found",
            query=(
                flag("follow", "Stream new lines."),
                Parameter("component", "Only pods of this component."),
                Parameter("pod", "This pod."),
                Parameter("container", "Only containers with this name."),
                number("tail", "Number of last lines of each container.", least=0, most=10_000, default=1000),
                number("sinceSeconds", "Only lines that are not older.", least=1),
                flag("previous", "Logs of the previous containers."),
            ),
            streams=True,
        )


def _writes(kind: Kind, route: RouteSection, writing: ObjectWriter) -> Iterator[Route]:
    of, name = partial(_of, kind), kind.operation
    changed = {
        200: ResponseSpec("The stored object; in a dry run, the object that would be stored.", OBJECT, ("ETag",))
    }
    changes = partial(route, query=(DRY_RUN,), conditional=True)
    yield route(
        "POST ",
        f"create{name}",
        f"Create a {kind.word}.",
        of(writing.create),
        created("Dry run, or created by this request before.", OBJECT),
        *("invalid", "not-found", "already-exists", "key-reused"),
        query=(DRY_RUN,),
        body=OBJECT_BODY,
        idempotent=True,
    )
    yield changes(
        "PUT /{name}",
        f"replace{name}",
        "Replace the object.",
        of(writing.replace),
        changed,
        *_CHANGES,
        body=OBJECT_BODY,
    )
    yield changes(
        "PATCH /{name}",
        f"patch{name}",
        "Change fields of the object.",
        of(writing.patch),
        changed,
        *_CHANGES,
        body={MERGE_PATCH: "Any", JSON_PATCH: "Any"},
    )
    yield changes(
        "DELETE /{name}",
        f"delete{name}",
        "Delete it.",
        of(writing.delete),
        {204: ResponseSpec("Deleted, or being deleted.")},
        *_CHANGES,
        query=(DRY_RUN, _PROPAGATION),
    )
