"""Errors of requests to the API server, classified by the decisions of callers.

Every class is caught somewhere. Every error keeps the server's Status (code, reason, message, details). A failure that
never reached a server (refused connection, reset, time-out) is `Unavailable` with its cause chained. The only decision
here is `retriable`: whether the same request may succeed later although no one changes anything.
"""

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from dynamo_shared.api.objects import KubeObject

# Longest quoted body if the answer is not a Status (a proxy's HTML page, "404 page not found").
_QUOTED_BODY = 300
#: Longest wait that an answer may request, in seconds.
LONGEST_WAIT = 60.0
#: Reason for a stream that was answered and then was silent for too long; "Timeout" is the reason without any answer.
SILENCE = "Silence"

# The header may also be a date. Python refuses numbers with thousands of digits, and accepts digits other than 0 to 9.
_SECONDS = re.compile(r" *[0-9]{1,9} *")
# Server-side apply answers 500 if the body does not fit the schema (for example, a string in place of a list):
# apiserver/pkg/endpoints/handlers/fieldmanager, structuredmerge.go. The mistake is the caller's, not the server's.
_TYPED_PATCH_FAILURES = ("failed to create typed patch object", "failed to convert new object")
_UNKNOWN_FIELD = "field not declared in schema"
# Also answered with 500: etcd accepts 1.5 MiB, its client in the API server sends 2 MiB, and the API server accepts
# bodies of 3 MiB (413).
_TOO_LARGE = (
    "etcdserver: request is too large",
    "rpc error: code = ResourceExhausted desc = trying to send message larger than max",
)
# From apiserver/pkg/admission/plugin/webhook/errors, followed by the webhook's name and the failure.
_NO_ANSWER = "failed calling webhook"
# From the same place, with the webhook's name; an explanation may follow.
_DENIAL = re.compile(r'admission webhook "[^"]*" denied the request')
# apiserver/pkg/endpoints/handlers/responsewriters/errors.go; refusals of quotas and admission have other words.
_MISSING_RIGHT = re.compile(r'(?:\S+(?: "[^"]*")? is )?forbidden: User "[^"]*" cannot ')


@dataclass(frozen=True, slots=True)
class Cause:
    """A field that the server refused: its path, the kind of refusal, and the server's message."""

    field: str
    reason: str
    message: str


class KubeError(Exception):
    """An unsuccessful answer of the API server. `status`: the HTTP code, or 0 without an answer."""

    retriable = False

    def __init__(
        self, status: int, reason: str, message: str, details: dict[str, Any] | None = None, *, request: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.details: dict[str, Any] = details or {}
        self.request = request
        # Number of attempts. If above 1, an earlier attempt may have succeeded unnoticed.
        self.attempts = 1

    def __str__(self) -> str:
        code = f"{self.status} {self.reason}".strip() if self.status else self.reason
        return f"{self.request}: {code}: {self.message}" if self.request else f"{code}: {self.message}"

    @property
    def causes(self) -> list[Cause]:
        """The fields in the server's `details.causes`, in its order."""
        return _causes(self.details)

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait according to the server, at most a minute; None if the server did not say.

        A gateway's maintenance page may request days, and the API server is back before that.
        """
        seconds = self.details.get("retryAfterSeconds")
        return float(max(0, min(seconds, LONGEST_WAIT))) if isinstance(seconds, (int, float)) else None


class NotFound(KubeError):
    """404 that names the missing object or its namespace: after it, the object counts as deleted."""


class NotServed(KubeError):
    """404 that names nothing: after it, no object counts as deleted.

    The API server does not serve the kind (its CRD is not installed), one of several API servers does not know it yet,
    or a gateway answered instead.
    """


class AlreadyExists(KubeError):
    """409 on create: an object with this name exists."""


class Conflict(KubeError):
    """409: a precondition (resourceVersion, uid) or another field manager prevents the write."""


class Invalid(KubeError):
    """422, 400, 413, or a body that does not fit the schema: only a changed request can succeed. `causes` name the fields."""


class UnknownField(Invalid):
    """An apply has a field that the cluster's definition lacks: the definition is older than this program."""


class Forbidden(KubeError):
    """403: RBAC, a quota or an admission policy refused. Also a webhook's refusal with a code of another meaning."""


class MissingRight(Forbidden):
    """403 of the authorizer: this program lacks a right. The object is not at fault: the same request succeeds once the
    program has the right, which may also be missing for a moment while a role is replaced, or an API server starts.
    """


class NamespaceTerminating(KubeError):
    """403: the namespace is being deleted, with its content, and accepts nothing new: do not report, do not retry."""


class Unauthorized(KubeError):
    """401: the server refused the credentials, also after a renewal."""


class TooManyRequests(KubeError):
    """429: retry after `retry_after` seconds (also the answer to an eviction that a disruption budget forbids)."""

    retriable = True


class Expired(KubeError):
    """410: the server no longer remembers the resourceVersion or the continue token; list again."""


class NotHeld(KubeError):
    """The write was not sent: another replica may own this work now."""


class Unavailable(KubeError):
    """5xx, connection failures and time-outs: try again later. Without an answer, `status` is 0 and the cause is chained."""

    retriable = True


class WebhookUnavailable(Unavailable):
    """5xx: a webhook that the API server called did not answer, or failed. The error lasts until someone repairs the webhook."""


class ResponseTooLarge(KubeError):
    """The answer is larger than the client accepts; request smaller pages."""


_BY_STATUS: dict[int, type[KubeError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotServed,
    409: Conflict,
    410: Expired,
    413: Invalid,
    422: Invalid,
    429: TooManyRequests,
}


def from_status(status: int, body: KubeObject, *, request: str = "") -> KubeError:
    """The error for a Status object, from an answer or an ERROR event of a watch."""
    reason = str(body.get("reason") or "")
    message = str(body.get("message") or "") or f"HTTP {status}"
    details = body.get("details")
    if not isinstance(details, dict):
        details = {}
    class_ = _class_of(status, reason, message, details)
    if _DENIAL.match(message) and not issubclass(class_, (Invalid, Forbidden)):
        # The webhook chose the code: it says nothing about the object.
        class_ = WebhookUnavailable if status >= 500 else Forbidden
    return class_(status, reason, message, details, request=request)


def from_response(status: int, content: bytes, *, retry_after: str | None = None, request: str = "") -> KubeError:
    """The error for an HTTP answer: from its Status if the body is one, otherwise with the start of the body as message."""
    try:
        decoded: Any = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        decoded = None
    if isinstance(decoded, dict) and decoded.get("kind") == "Status":
        body = decoded
    else:
        body = {"message": content[:_QUOTED_BODY].decode("utf-8", "replace").strip()}
    error = from_status(status, body, request=request)
    if retry_after is not None and error.retry_after is None and _SECONDS.fullmatch(retry_after):
        error.details = {**error.details, "retryAfterSeconds": int(retry_after)}
    return error


def _causes(details: dict[str, Any]) -> list[Cause]:
    causes = details.get("causes")
    return [
        Cause(str(cause.get("field", "")), str(cause.get("reason", "")), str(cause.get("message", "")))
        for cause in (causes if isinstance(causes, list) else ())
        if isinstance(cause, dict)
    ]


def _class_of(status: int, reason: str, message: str, details: dict[str, Any]) -> type[KubeError]:
    if reason == "AlreadyExists":
        return AlreadyExists
    if status == 422 and {cause.field for cause in _causes(details)} == {"metadata.uid"}:
        # A uid in an apply is a precondition, although the answer calls it an immutable field.
        return Conflict
    if status == 403 and any(cause.reason == "NamespaceTerminating" for cause in _causes(details)):
        return NamespaceTerminating
    if status == 403 and _MISSING_RIGHT.match(message):
        return MissingRight
    if status == 404 and details.get("name"):
        return NotFound
    if status >= 500:
        return _of_a_server(message)
    return _BY_STATUS.get(status, KubeError)


def _of_a_server(message: str) -> type[KubeError]:
    if message.startswith(_TYPED_PATCH_FAILURES + _TOO_LARGE):
        return UnknownField if _UNKNOWN_FIELD in message else Invalid
    return WebhookUnavailable if _NO_ANSWER in message else Unavailable
