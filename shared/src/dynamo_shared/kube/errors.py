"""What can go wrong between us and the API server, as the decisions that callers take on it.

Only classes that someone catches exist. Every error keeps the server's Status (code, reason, message, details); what
never reached a server (refused connections, resets, time-outs) is `Unavailable` with the cause chained. The one
decision that belongs here is `retriable`: whether the same request may succeed later without anyone changing anything.
"""

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from dynamo_shared.api.objects import KubeObject

# Longest body that is quoted when the answer is not a Status (a proxy's HTML page, "404 page not found").
_QUOTED_BODY = 300
#: Longest that an answer may keep us waiting, in seconds.
LONGEST_WAIT = 60.0
#: Reason of a stream that was answered and then said nothing for too long; "Timeout" is that of what was not answered.
SILENCE = "Silence"

# Of a header; it may be a date, too. Python refuses numbers of thousands of digits, and takes what is not a digit for one.
_SECONDS = re.compile(r" *[0-9]{1,9} *")
# Server-side apply answers 500 when the body does not fit the schema (a string where a list belongs, for example):
# apiserver/pkg/endpoints/handlers/fieldmanager, structuredmerge.go. It is the caller's mistake, not the server's.
_TYPED_PATCH_FAILURES = ("failed to create typed patch object", "failed to convert new object")
_UNKNOWN_FIELD = "field not declared in schema"
# As 500, too: etcd takes 1.5 MiB, its client in the API server sends 2 MiB, and that takes 3 MiB of one body (413).
_TOO_LARGE = (
    "etcdserver: request is too large",
    "rpc error: code = ResourceExhausted desc = trying to send message larger than max",
)
# apiserver/pkg/admission/plugin/webhook/errors: with the name of the webhook, and what went wrong.
_NO_ANSWER = "failed calling webhook"


@dataclass(frozen=True, slots=True)
class Cause:
    """One field that the server refused: its path, the kind of refusal, and the server's words."""

    field: str
    reason: str
    message: str


class KubeError(Exception):
    """An answer of the API server that is not success. `status` is the HTTP code, 0 where no answer came."""

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
        # How often the request was sent: with more than one, an earlier one may have done its work unseen.
        self.attempts = 1

    def __str__(self) -> str:
        code = f"{self.status} {self.reason}".strip() if self.status else self.reason
        return f"{self.request}: {code}: {self.message}" if self.request else f"{code}: {self.message}"

    @property
    def causes(self) -> list[Cause]:
        """The fields that the server names in `details.causes`, in its order."""
        return _causes(self.details)

    @property
    def retry_after(self) -> float | None:
        """Seconds that the server asked us to wait, where it said so; a minute at most.

        A gateway's page for its maintenance may ask for days, and the API server is back before.
        """
        seconds = self.details.get("retryAfterSeconds")
        return float(max(0, min(seconds, LONGEST_WAIT))) if isinstance(seconds, (int, float)) else None


class NotFound(KubeError):
    """404 that names what is not there, an object or its namespace: after it the object counts as gone."""


class NotServed(KubeError):
    """404 that names nothing: no object counts as gone after it.

    The API server does not serve the kind (its CRD is not installed), one of several does not know it yet, or a gateway
    answers in its place.
    """


class AlreadyExists(KubeError):
    """409 on create: an object of this name is there."""


class Conflict(KubeError):
    """409: a precondition (resourceVersion, uid) or another field manager stands against the write."""


class Invalid(KubeError):
    """422, 400, 413, or a body that does not fit the schema: only a change can help. `causes` names the fields."""


class UnknownField(Invalid):
    """An apply has a field that the definition in the cluster lacks: it is older than the program that wants to write it."""


class Forbidden(KubeError):
    """403: RBAC, a quota or an admission policy refused."""


class NamespaceTerminating(KubeError):
    """403: the namespace is being deleted and takes nothing new. All that is in it goes by itself: it is not a refusal to report,
    and nothing is tried again.
    """


class Unauthorized(KubeError):
    """401: the credentials were refused, also after they were renewed."""


class TooManyRequests(KubeError):
    """429: come back after `retry_after` seconds (also the answer of an eviction that a budget forbids)."""

    retriable = True


class Expired(KubeError):
    """410: the resourceVersion or the continue token is older than what the server remembers; list again."""


class NotHeld(KubeError):
    """The write was not sent: this replica may have lost what it works on to another one."""


class Unavailable(KubeError):
    """5xx, connection failures and time-outs: the same request may succeed later. For failures without an answer
    `status` is 0 and the cause is chained.
    """

    retriable = True


class WebhookUnavailable(Unavailable):
    """500: a webhook that the API server asks about the object did not answer. It lasts until someone mends the webhook."""


class ResponseTooLarge(KubeError):
    """The answer is larger than the client accepts; ask for smaller pages."""


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
    """The error of a Status object, as answers and ERROR watch events carry it."""
    reason = str(body.get("reason") or "")
    message = str(body.get("message") or "") or f"HTTP {status}"
    details = body.get("details")
    if not isinstance(details, dict):
        details = {}
    return _class_of(status, reason, message, details)(status, reason, message, details, request=request)


def from_response(status: int, content: bytes, *, retry_after: str | None = None, request: str = "") -> KubeError:
    """The error of an HTTP answer: its Status where the body is one, else the start of the body as the message."""
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
        # A uid in an apply is a precondition like any other, though the answer calls it an immutable field.
        return Conflict
    if status == 403 and any(cause.reason == "NamespaceTerminating" for cause in _causes(details)):
        return NamespaceTerminating
    if status == 404 and details.get("name"):
        return NotFound
    if status >= 500:
        return _of_a_server(message)
    return _BY_STATUS.get(status, KubeError)


def _of_a_server(message: str) -> type[KubeError]:
    if message.startswith(_TYPED_PATCH_FAILURES + _TOO_LARGE):
        return UnknownField if _UNKNOWN_FIELD in message else Invalid
    return WebhookUnavailable if _NO_ANSWER in message else Unavailable
