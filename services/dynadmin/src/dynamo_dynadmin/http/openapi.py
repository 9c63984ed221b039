"""Generates the OpenAPI 3.1 document from the route table and the models. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from dynamo_dynadmin.http.problems import KINDS, MEDIA_TYPE
from dynamo_dynadmin.http.routes import SSE, YAML, ResponseSpec, Route
from dynamo_dynadmin.identity.session import COOKIE, CSRF_HEADER

#: Problems of every operation.
ALWAYS = ("bad-request", "forbidden", "too-many-requests", "unavailable", "internal")
_NAMED = {"namespace": (63, r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), "name": (253, r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")}
_HEADERS = {
    "ETag": "Version of the object, for If-Match.",
    "Location": "Path of the object.",
    "Set-Cookie": "The session.",
    "Idempotency-Replayed": "`true` if an earlier request with this key created the object.",
    "Retry-After": "Seconds after which to retry the request.",
}
#: Statuses of temporary problems.
_PASSING = (429, 503)
_DESCRIPTION = """\
REST over the resources of Dynamo Platform, with the rights of the caller: Kubernetes' RBAC and audit decide.
Every refusal is a problem (RFC 9457) with all errors at once. Changes need If-Match. Streams are server-sent events that
Last-Event-ID resumes. HEAD answers like GET, without the content.
Requests name Secrets; the API never reads or returns their content."""


def document(routes: Sequence[Route], models: Mapping[str, type[BaseModel]], version: str) -> dict[str, Any]:
    """The document. `models` must have all models that routes name; raises KeyError if one is missing."""
    names = {"Problem", *(name for route in routes for name in _named(route))}
    _, definitions = models_json_schema(
        [(models[name], "serialization" if name != "DeployIntent" else "validation") for name in sorted(names)],
        ref_template="#/components/schemas/{model}",
    )
    schemas: dict[str, Any] = {**definitions["$defs"], "Any": {}}
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Dynamo Platform: Dynadmin", "version": version, "description": _DESCRIPTION},
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "responses": _shared_problems(),
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Token of the cluster or of the issuer."},
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": COOKIE,
                    "description": "Session of a browser.",
                },
                "csrf": {
                    "type": "apiKey",
                    "in": "header",
                    "name": CSRF_HEADER,
                    "description": "`csrfToken` of the session, which changes also need.",
                },
            },
        },
    }


def _named(route: Route) -> Iterable[str]:
    """Names of the models in a route's bodies and answers."""
    for content in (route.body, *(answer.content for answer in route.answers.values())):
        yield from (name for name in content.values() if name not in ("", "Any"))


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.operation,
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": [*_path_parameters(route), *_query_parameters(route), *_header_parameters(route)],
        "responses": {
            **{str(status): _answer(answer) for status, answer in sorted(route.answers.items())},
            **_problems(route),
        },
    }
    if route.public:
        operation["security"] = []
    elif route.method != "GET":
        operation["security"] = [{"token": []}, {"session": [], "csrf": []}]
    if route.body:
        operation["requestBody"] = {
            "required": True,
            "content": {media: {"schema": _reference(name)} for media, name in route.body.items()},
        }
    if not operation["parameters"]:
        del operation["parameters"]
    return operation


def _path_parameters(route: Route) -> Iterable[dict[str, Any]]:
    for name in re.findall(r"{(\w+)}", route.path):
        longest, pattern = _NAMED[name]
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "maxLength": longest, "pattern": pattern},
        }


def _query_parameters(route: Route) -> Iterable[dict[str, Any]]:
    for each in route.query:
        yield {"name": each.name, "in": "query", "description": each.description, "schema": dict(each.schema)}


def _header_parameters(route: Route) -> Iterable[dict[str, Any]]:
    text = {"type": "string"}
    if route.conditional:
        description = "ETag of the object to change, or `*` for any version."
        yield {"name": "If-Match", "in": "header", "required": True, "description": description, "schema": text}
    if route.idempotent:
        description = "Repeated requests with the same key and body create one object."
        schema = {"type": "string", "minLength": 1, "maxLength": 128, "pattern": r"^[\x21-\x7e]+$"}
        yield {"name": "Idempotency-Key", "in": "header", "description": description, "schema": schema}
    if HTTPStatus.NOT_MODIFIED in route.answers:
        description = "ETag of the version that the caller has: 304 if it is still current."
        yield {"name": "If-None-Match", "in": "header", "description": description, "schema": text}
    if route.streams:
        description = "Id of the last received event."
        yield {"name": "Last-Event-ID", "in": "header", "description": description, "schema": text}


def _answer(answer: ResponseSpec) -> dict[str, Any]:
    described: dict[str, Any] = {"description": answer.description}
    if answer.content:
        described["content"] = {media: _content(media, name) for media, name in answer.content.items()}
    if answer.headers:
        described["headers"] = _headers(answer.headers)
    return described


def _headers(names: Iterable[str]) -> dict[str, Any]:
    return {name: {"description": _HEADERS[name], "schema": {"type": "string"}} for name in names}


def _content(media: str, name: str) -> dict[str, Any]:
    return {"schema": {"type": "string"} if media in (SSE, YAML) and not name else _reference(name)}


def _problems(route: Route) -> dict[str, Any]:
    kinds = {*ALWAYS, *route.problems}
    if not route.public or route.operation == "beginSession":
        kinds.add("unidentified")
    if route.body:
        kinds |= {"unsupported-media-type", "too-large", "invalid"}
    if route.method != "GET":
        kinds.add("csrf")
    statuses = sorted({KINDS[kind][0] for kind in kinds})
    return {str(status): {"$ref": f"#/components/responses/Problem{status}"} for status in statuses}


def _shared_problems() -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for kind, (status, title) in KINDS.items():
        by_status.setdefault(status, []).append(f"{title} (`{kind}`)")
    return {
        f"Problem{status}": {
            "description": "; ".join(listed),
            **({"headers": _headers(["Retry-After"])} if status in _PASSING else {}),
            "content": {MEDIA_TYPE: {"schema": _reference("Problem")}},
        }
        for status, listed in sorted(by_status.items())
    }


def _reference(name: str) -> Mapping[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
