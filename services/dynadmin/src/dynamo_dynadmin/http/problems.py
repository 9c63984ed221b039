"""Problems (RFC 9457): all reasons why a request was refused, as pointers into what the caller sent."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from dynamo_shared.kube import (
    AlreadyExists,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    KubeError,
    NamespaceTerminating,
    NotFound,
    NotServed,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from pydantic import BaseModel, ValidationError

from dynamo_dynadmin.deploy.draft import parts_of
from dynamo_dynadmin.deploy.problems import FieldProblem, pointer, problems_of

Body = TypeVar("Body", bound=BaseModel)

MEDIA_TYPE = "application/problem+json"
#: Every kind of problem, with its status and title. The type is `urn:dynamo:problem:<kind>`.
KINDS: Mapping[str, tuple[int, str]] = {
    "bad-request": (400, "The request is malformed"),
    "invalid": (422, "Fields are not valid"),
    "unidentified": (401, "The caller is not authenticated"),
    "forbidden": (403, "The caller has no right to do this"),
    "csrf": (403, "The session's CSRF token is missing"),
    "not-found": (404, "Not found"),
    "method-not-allowed": (405, "The resource does not allow this method"),
    "conflict": (409, "The state of the resource does not allow this"),
    "already-exists": (409, "An object of this name exists"),
    "managed-elsewhere": (409, "Another tool manages this object"),
    "owned-replicas": (409, "Another owner sets these replicas"),
    "expired": (410, "The position in the list has expired; list again"),
    "stale": (412, "The object has changed"),
    "too-large": (413, "The body is too large"),
    "unsupported-media-type": (415, "The type of the body is not supported"),
    "key-reused": (422, "The idempotency key was used for another request"),
    "precondition-required": (428, "If-Match is required"),
    "too-many-requests": (429, "Too many requests"),
    "internal": (500, "Internal error"),
    "unavailable": (503, "Temporarily unavailable"),
}
_DENIED = re.compile(r'^admission webhook "[^"]+" denied the request: ')
_LINE = re.compile(r"^(?:- )?([A-Za-z][^\s:]*): (.+)$")
#: Maximum errors in one answer.
_LISTED = 200


#: Kinds of problems for the API server's errors.
_KINDS: tuple[tuple[type[KubeError], str], ...] = (
    (AlreadyExists, "already-exists"),
    (Conflict, "stale"),
    (NotFound, "not-found"),
    (NotServed, "not-found"),
    (Expired, "expired"),
    (Forbidden, "forbidden"),
    (NamespaceTerminating, "conflict"),
    (Invalid, "invalid"),
    (TooManyRequests, "too-many-requests"),
    (Unauthorized, "unavailable"),
    (Unavailable, "unavailable"),
)
_KINDS_BY_STATUS = {405: "method-not-allowed", 413: "too-large", 415: "unsupported-media-type"}


class ProblemError(Exception):
    """Answers a request with a problem; `retry_after`: seconds until a retry may succeed, 0 if the problem is
    permanent.
    """

    def __init__(
        self,
        kind: str,
        detail: str,
        *,
        errors: Sequence[FieldProblem] = (),
        headers: Mapping[str, str] | None = None,
        retry_after: int = 0,
        **extensions: Any,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = {**(headers or {}), **({"Retry-After": str(retry_after)} if retry_after else {})}
        self.extensions = extensions

    @property
    def status(self) -> int:
        """HTTP status."""
        return KINDS[self.kind][0]

    def document(self, request: str) -> dict[str, Any]:
        """The problem as JSON; `request` is the id of the refused request."""
        status, title = KINDS[self.kind]
        listed = [
            {"pointer": each.pointer, "detail": each.detail, **({"source": each.source} if each.source else {})}
            for each in self.errors[:_LISTED]
        ]
        return {
            "type": f"urn:dynamo:problem:{self.kind}",
            "title": title,
            "status": status,
            "detail": self.detail[:8192],
            "instance": f"urn:uuid:{request}",
            **({"errors": listed} if listed else {}),
            **{name: value for name, value in self.extensions.items() if value is not None},
        }

    def response(self, request: str) -> web.Response:
        """The answer."""
        body = msgspec.json.encode(self.document(request))
        return web.Response(body=body, status=self.status, content_type=MEDIA_TYPE, headers=self.headers)


def invalid(errors: Sequence[FieldProblem]) -> ProblemError:
    """A problem for invalid fields. Its detail has the first error, for clients that show nothing else."""
    first = f"{errors[0].pointer or 'the whole'}: {errors[0].detail}"
    more = len(errors) - 1
    others = f"; and {more} more, in errors" if more else ""
    return ProblemError("invalid", f"{first}{others}", errors=errors)


def validated(model: type[Body], sent: Any) -> Body:
    """Parse what was sent into a model. Raises ProblemError with every error."""
    try:
        return model.model_validate(sent, by_alias=True, by_name=False)
    except ValidationError as error:
        raise invalid(problems_of(error, model)) from None


def manifest_problems(error: KubeError) -> list[FieldProblem]:
    """The fields that the API server or an admission webhook refused, as pointers into the manifest."""
    fields = [(cause.field, cause.message) for cause in error.causes if cause.field]
    if not fields:
        text = _DENIED.sub("", error.message)
        fields = [(match[1], match[2]) for line in text.splitlines() if (match := _LINE.match(line)) is not None]
    return [FieldProblem(pointer(parts_of(path)), message, path) for path, message in fields]


def of_kube(error: KubeError) -> ProblemError:
    """The problem for an error of the API server."""
    kind = next(
        (kind for classes, kind in _KINDS if isinstance(error, classes)), _KINDS_BY_STATUS.get(error.status, "")
    )
    if not kind:
        kind = "bad-request" if 400 <= error.status < 500 else "unavailable"
    if isinstance(error, Unauthorized):
        # This process's own credentials: the caller's were verified.
        detail = "the API server refuses the credentials of this service; an administrator must renew them"
        return ProblemError(kind, detail, retry_after=5)
    detail, errors = error.message, []
    if isinstance(error, (Invalid, Forbidden)):
        detail, errors = _DENIED.sub("", error.message), manifest_problems(error)
        if detail != error.message:
            # A webhook denied it, and a webhook may use either status.
            kind = "invalid"
    elif isinstance(error, Expired):
        detail = f"{error.message}; list again without `continue`"
    elif isinstance(error, Unavailable):
        detail = f"the API server does not answer: {error.reason}: {error.message}"
    errors = errors if kind == "invalid" else []
    retry_after = max(1, int(error.retry_after or 1)) if error.retriable else 0
    return ProblemError(kind, detail, errors=errors, retry_after=retry_after, reason=error.reason or None)
