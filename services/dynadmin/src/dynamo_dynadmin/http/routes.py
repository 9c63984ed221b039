"""The route table: operations, with their access, parameters and answers. Server and OpenAPI document use it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from aiohttp import web

from dynamo_dynadmin.http.call import Call

Handler: TypeAlias = Callable[[Call], Awaitable[web.StreamResponse]]
Schema: TypeAlias = dict[str, Any]

JSON, YAML, SSE, TEXT = "application/json", "application/yaml", "text/event-stream", "text/plain"
MERGE_PATCH, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A query parameter."""

    name: str
    description: str
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string", "maxLength": 4096})


@dataclass(frozen=True, slots=True)
class ResponseSpec:
    """An answer that is not a problem: media types, each with the name of its schema (empty: any text)."""

    description: str
    content: Mapping[str, str] = field(default_factory=dict)
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One operation."""

    method: str
    path: str
    operation: str
    """operationId, which must not change"""
    summary: str
    tag: str
    handle: Handler
    answers: Mapping[int, ResponseSpec]
    problems: tuple[str, ...] = ()
    """kinds of problems in addition to those of every operation"""
    query: tuple[Parameter, ...] = ()
    body: Mapping[str, str] = field(default_factory=dict)
    """accepted media types, each with the name of its schema; the first is the usual one"""
    conditional: bool = False
    """whether If-Match is required"""
    idempotent: bool = False
    """whether an Idempotency-Key is accepted"""
    public: bool = False
    """whether callers may be unidentified"""
    lenient: bool = False
    """whether unknown parameters are ignored: third parties add theirs"""
    streams: bool = False
    """whether the answer may be a stream of server-sent events"""
    by_browser: bool = False
    """whether browsers navigate to this path, so that people need a readable problem"""


def flag(name: str, description: str) -> Parameter:
    """A boolean parameter."""
    return Parameter(name, description, {"type": "boolean", "default": False})


def number(
    name: str, description: str, *, least: int = 0, most: int = 2**31 - 1, default: int | None = None
) -> Parameter:
    """An integer parameter."""
    schema: Schema = {"type": "integer", "minimum": least, "maximum": most}
    if default is not None:
        schema["default"] = default
    return Parameter(name, description, schema)


def choice(name: str, description: str, *values: str, default: str | None = None) -> Parameter:
    """A parameter with a fixed set of values."""
    schema: Schema = {"type": "string", "enum": list(values)}
    if default is not None:
        schema["default"] = default
    return Parameter(name, description, schema)
