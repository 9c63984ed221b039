"""A request in progress: its caller, its parameters and body, and a client with the caller's rights."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from aiohttp import web
from dynamo_shared.aio import Offload
from dynamo_shared.api.embedded.rules.names import wrong_object_name
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.objects import KubeObject, without_managed_fields
from dynamo_shared.api.untrusted.limits import MANIFEST, check_count
from dynamo_shared.api.untrusted.yaml_text import documents
from dynamo_shared.kube import KubeClient

from dynamo_dynadmin.deploy.draft import parts_of
from dynamo_dynadmin.deploy.problems import FieldProblem, pointer
from dynamo_dynadmin.http.problems import ProblemError
from dynamo_dynadmin.identity.who import Caller

if TYPE_CHECKING:
    from dynamo_dynadmin.http.routes import Route

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
#: Proxies that compress an answer weaken its ETag. It still identifies the same version of the object.
_ETAG = re.compile(r'(?:W/)?"([0-9A-Za-z_-]{1,64})"')
_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,128}")
#: Time in which the complete body must arrive: a slow sender occupies a place among the requests in progress. Seconds.
BODY_WITHIN = 60.0
#: Larger bodies are parsed and checked in threads, at most `LARGE_AT_ONCE` concurrently: YAML of a megabyte takes more
#: than a second, and other requests and streams must continue. An intent of the form is smaller. Bytes.
LARGE_BODY, LARGE_AT_ONCE = 4 << 10, 2
_TRUE, _FALSE = frozenset({"true", "1", ""}), frozenset({"false", "0"})
_encode = msgspec.json.Encoder().encode
#: Accepts only what can be written again: no lone surrogates, no infinite numbers.
_decode = msgspec.json.Decoder().decode

T = TypeVar("T")


@dataclass(slots=True)
class OngoingRequest:
    """The server's state of a request in progress."""

    id: str
    operation: str = "none"
    caller: Caller | None = None
    again: Callable[[], Awaitable[Caller]] | None = None
    """identifies the token's caller again"""
    by_browser: bool = False
    leave: Callable[[], None] = lambda: None
    """stops counting the request among those in progress"""
    status_if_left: int = 499
    """status in the log if the client leaves: 200 for a stream, which usually ends like this"""
    warnings: list[str] = field(default_factory=list)
    """warnings of the API server, unchanged"""


TURN = web.RequestKey("turn", OngoingRequest)


@dataclass(slots=True)
class Call:
    """A request whose caller is known. `large` runs work on large bodies and objects."""

    request: web.Request
    route: Route
    caller: Caller
    kube: KubeClient
    large: Offload
    size: int = 0
    """of the body, after it is read; bytes"""

    @property
    def id(self) -> str:
        """The id of the request."""
        return self.request[TURN].id

    @property
    def warnings(self) -> list[str]:
        """Warnings for the answer."""
        return self.request[TURN].warnings

    @property
    def namespace(self) -> str:
        """The namespace in the path. Raises ProblemError if it is not a valid name."""
        text = self.request.match_info["namespace"]
        if not _NAMESPACE.fullmatch(text):
            raise ProblemError("not-found", "the namespace in the path is not a valid name")
        return text

    @property
    def name(self) -> str:
        """The name in the path. Raises ProblemError if it is not a valid name."""
        text = self.request.match_info["name"]
        if not text or wrong_object_name(text):
            raise ProblemError("not-found", "the name in the path is not a valid name")
        return text

    def text(self, name: str) -> str:
        """A parameter; empty if it is missing."""
        return self.request.query.get(name, "")

    def flag(self, name: str) -> bool:
        """A boolean parameter."""
        return self.request.query.get(name, "false").lower() in _TRUE

    def number(self, name: str, otherwise: int) -> int:
        """An integer parameter."""
        text = self.request.query.get(name, "")
        return int(text) if text else otherwise

    def check_query(self) -> None:
        """Raises ProblemError with every unknown or invalid parameter."""
        known = {each.name: each.schema for each in self.route.query}
        errors = []
        # Each name once: a URL has room for thousands of repetitions.
        for name, count in Counter(name for name, _ in self.request.query.items()).items():
            if name not in known:
                if self.route.lenient:
                    continue
                detail = f"unknown parameter; allowed: {', '.join(sorted(known)) or 'none'}"
                errors.append(FieldProblem(f"?{name[:100]}", detail))
            elif count > 1:
                errors.append(FieldProblem(f"?{name}", "set more than once"))
            elif (wrong := _wrong(known[name], self.text(name))) is not None:
                errors.append(FieldProblem(f"?{name}", wrong))
        if errors:
            detail = "; ".join(f"{each.pointer[1:]}: {each.detail}" for each in errors)
            raise ProblemError("bad-request", detail, errors=errors)

    def if_match(self) -> tuple[str, ...]:
        """The resourceVersions of If-Match; empty for `*`. Raises ProblemError if the header is missing."""
        tags = [each.strip() for line in self.request.headers.getall("If-Match", ()) for each in line.split(",")]
        if not tags:
            raise ProblemError(
                "precondition-required", "send the ETag of the object that you change as If-Match, or * for any"
            )
        if tags == ["*"]:
            return ()
        versions = tuple(match[1] for each in tags if (match := _ETAG.fullmatch(each)) is not None)
        if not versions:
            raise ProblemError(
                "stale", 'If-Match is not an ETag of this API, such as "123" with its quotes; read the object again'
            )
        return versions

    def has(self, obj: KubeObject) -> bool:
        """Whether If-None-Match names this version of an object."""
        known = self.request.if_none_match or ()
        return any(each.value == "*" or f'"{each.value}"' == etag(obj) for each in known)

    def idempotency_key(self) -> str:
        """The Idempotency-Key; empty if it is missing. Raises ProblemError if it is invalid."""
        text = self.request.headers.get("Idempotency-Key", "")
        if text and not _IDEMPOTENCY_KEY.fullmatch(text):
            raise ProblemError(
                "bad-request", "Idempotency-Key: must be 1 to 128 printable ASCII characters without blanks"
            )
        return text

    async def body(self) -> Any:
        """The body, JSON or YAML according to its Content-Type. Raises ProblemError."""
        kind = self.request.content_type
        if kind not in self.route.body:
            raise ProblemError("unsupported-media-type", f"Content-Type: must be one of {', '.join(self.route.body)}")
        content = await self._content()
        self.size = len(content)
        if not content.strip():
            raise ProblemError("bad-request", "the body is empty")
        return await self.apart(lambda: _parsed(kind, content))

    async def apart(self, work: Callable[[], T], size: int | None = None) -> T:
        """Runs work on the body, or on an object of this size, and returns its result or raises its error. Only small work
        blocks other requests, and large work of one user waits for each other.
        """
        return await self.large.run(self.size if size is None else size, work, self.caller.limit_key)

    async def _content(self) -> bytes:
        try:
            async with asyncio.timeout(BODY_WITHIN):
                return await self.request.read()
        except web.RequestPayloadError as error:
            raise ProblemError("bad-request", "the body's encoding does not match its headers") from error
        except web.HTTPRequestEntityTooLarge:
            most = self.request.client_max_size
            raise ProblemError("too-large", f"the body has more than {most} bytes, the limit") from None
        except TimeoutError:
            raise ProblemError("bad-request", f"the body did not arrive within {BODY_WITHIN:g} s") from None

    async def object(self) -> dict[str, Any]:
        """The body, which must be an object. Raises ProblemError."""
        body = await self.body()
        if not isinstance(body, dict):
            raise ProblemError("invalid", "the body must be an object", errors=[FieldProblem("", "must be an object")])
        return body

    def answer(self, content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
        """A JSON response."""
        body = content if isinstance(content, bytes) else _encode(content)
        return web.Response(body=body, status=status, content_type="application/json", headers=headers)

    def answer_object(
        self, obj: KubeObject, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> web.Response:
        """A response with an object and its ETag."""
        return self.answer(without_managed_fields(obj), status, {**(headers or {}), "ETag": etag(obj)})


def etag(obj: KubeObject) -> str:
    """The ETag of an object."""
    return f'"{obj["metadata"].get("resourceVersion", "0")}"'


def _wrong(schema: Mapping[str, Any], text: str) -> str | None:
    if schema.get("type") == "boolean":
        return None if text.lower() in _TRUE | _FALSE else "must be true or false"
    if schema.get("type") == "integer":
        least, most = schema["minimum"], schema["maximum"]
        valid = re.fullmatch(r"[0-9]{1,10}", text) is not None and least <= int(text) <= most
        return None if valid else f"must be a whole number from {least} to {most}"
    if (values := schema.get("enum")) is not None:
        return None if text in values else f"must be one of {', '.join(values)}"
    most = schema["maxLength"]
    return None if len(text) <= most else f"must have at most {most} characters"


def _parsed(kind: str, content: bytes) -> Any:
    """The value of a body, JSON or YAML. Raises ProblemError."""
    try:
        if kind != "application/yaml":
            body = _decode(content)
            check_count(body, MANIFEST)
            # Only after the limits are checked: this parser has no limits.
            _check_keys(content)
            return body
        listed = documents(content.decode())
    except InvalidManifest as error:
        raise ProblemError(
            "bad-request",
            str(error),
            errors=[FieldProblem(pointer(parts_of(e.path)), e.message) for e in error.errors],
        ) from None
    except (ValueError, RecursionError) as error:
        raise ProblemError("bad-request", f"the body is not valid: {str(error)[:500]}") from None
    if len(listed) != 1:
        raise ProblemError("bad-request", f"the body must be one document, not {len(listed)}")
    return listed[0]


def joined(items: Sequence[bytes]) -> bytes:
    """A JSON array of encoded values."""
    return b"[" + b",".join(items) + b"]"


def _check_keys(content: bytes) -> None:
    """Raises ValueError if an object repeats a key: its author means one of the values, a parser may use the other."""
    json.loads(content, object_pairs_hook=_distinct, parse_int=len, parse_float=len)


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    keys: set[str] = set()
    for key, _ in pairs:
        if key in keys:
            raise ValueError(f"the key {key[:100]!r} is set twice")
        keys.add(key)
