"""The error class for each answer, and what the error keeps of the answer."""

import json

import pytest
from dynamo_shared.kube import errors
from dynamo_shared.kube.transport import connection_words


def status(code: int, reason: str = "", message: str = "m", **details: object) -> bytes:
    return json.dumps(
        {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    ).encode()


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", errors.Invalid),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotServed),
        (405, "MethodNotAllowed", errors.KubeError),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Expired", errors.Expired),
        (410, "Gone", errors.Expired),
        (413, "RequestEntityTooLarge", errors.Invalid),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.Unavailable),
        (503, "ServiceUnavailable", errors.Unavailable),
        (504, "Timeout", errors.Unavailable),
    ],
)
def test_class_of_an_answer(code: int, reason: str, expected: type[errors.KubeError]) -> None:
    error = errors.from_response(code, status(code, reason))
    assert type(error) is expected
    assert (error.status, error.reason, error.message) == (code, reason, "m")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            'deployments.apps is forbidden: User "system:serviceaccount:dynamo-system:scaler" cannot create resource '
            '"deployments" in API group "apps" in the namespace "ns"',
            errors.MissingRight,
        ),
        ('pods "a" is forbidden: exceeded quota: q, requested: pods=1', errors.Forbidden),
        ('admission webhook "x" denied the request: User "a" cannot create resource "pods"', errors.Forbidden),
    ],
)
def test_a_missing_right_differs_from_a_refused_object(message: str, expected: type[errors.KubeError]) -> None:
    assert type(errors.from_response(403, status(403, "Forbidden", message))) is expected


def test_an_apply_that_does_not_match_the_schema_is_invalid_although_the_server_answers_500() -> None:
    message = (
        "failed to create typed patch object (a/b; apps/v1, Kind=Deployment): .spec.x: field not declared in schema"
    )
    error = errors.from_response(500, status(500, message=message))
    assert type(error) is errors.UnknownField
    assert isinstance(error, errors.Invalid)
    assert not error.retriable


@pytest.mark.parametrize(
    "message",
    [
        "etcdserver: request is too large",
        "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2501237 vs. 2097152)",
    ],
)
def test_an_object_too_large_for_etcd_is_invalid_although_the_server_answers_500(message: str) -> None:
    error = errors.from_response(500, status(500, message=message))
    assert isinstance(error, errors.Invalid)


def test_an_unreachable_webhook_is_recognized() -> None:
    message = 'Internal error occurred: failed calling webhook "a.b": failed to call webhook: Post "https://a": EOF'
    error = errors.from_response(500, status(500, "InternalError", message=message))
    assert isinstance(error, errors.WebhookUnavailable)
    assert error.retriable


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (500, "", errors.WebhookUnavailable),
        (400, "", errors.Invalid),
        (422, "Invalid", errors.Invalid),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.Forbidden),
        (409, "AlreadyExists", errors.Forbidden),
        (409, "Conflict", errors.Forbidden),
        (410, "Expired", errors.Forbidden),
        (418, "", errors.Forbidden),
    ],
)
def test_a_refusal_by_a_webhook_says_nothing_about_the_object(code: int, reason: str, kind: type) -> None:
    """A webhook's author chooses code and reason. A 404 made an object count as deleted; others were never reported."""
    message = 'admission webhook "a.b" denied the request: cannot read its Team'
    assert type(errors.from_response(code, status(code, reason, message=message, name="team"))) is kind


def test_a_different_uid_is_a_conflict() -> None:
    causes = [{"reason": "FieldValueInvalid", "message": "field is immutable", "field": "metadata.uid"}]
    # The server repeats the cause.
    assert isinstance(errors.from_response(422, status(422, "Invalid", causes=causes * 2)), errors.Conflict)
    two = [*causes, {"field": "spec"}]
    assert isinstance(errors.from_response(422, status(422, "Invalid", causes=two)), errors.Invalid)


def test_a_namespace_that_is_being_deleted_accepts_no_new_object() -> None:
    cause = {
        "reason": "NamespaceTerminating",
        "message": "namespace n is being terminated",
        "field": "metadata.namespace",
    }
    error = errors.from_response(403, status(403, "Forbidden", causes=[cause]))
    assert type(error) is errors.NamespaceTerminating


def test_causes_name_their_fields() -> None:
    causes = [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.image"}]
    error = errors.from_response(422, status(422, "Invalid", causes=causes))
    assert error.causes == [errors.Cause("spec.image", "FieldValueRequired", "Required value")]


@pytest.mark.parametrize("causes", [["x"], [None, 3], "x", 3, {"field": "a"}, [{"field": ["metadata.uid"]}]])
def test_malformed_causes_are_ignored(causes: object) -> None:
    """A gateway or the author of a webhook wrote them."""
    error = errors.from_response(422, status(422, "Invalid", causes=causes))
    assert isinstance(error, errors.Invalid)
    assert all(each.field != "metadata.uid" for each in error.causes)


def test_a_missing_type_is_distinguished_from_a_missing_object() -> None:
    no_type = errors.from_response(404, b"404 page not found\n")
    no_object = errors.from_response(404, status(404, "NotFound", name="a", kind="pods"))
    assert (type(no_type), type(no_object)) == (errors.NotServed, errors.NotFound)
    assert no_type.message == "404 page not found"


@pytest.mark.parametrize("content", [b"", b"<html>" + b"x" * 10_000, b"\xff\xfe", b"[1]", b'{"kind":"Pod"}', b'{"a":'])
def test_an_answer_that_is_not_a_status_is_quoted(content: bytes) -> None:
    error = errors.from_response(502, content)
    assert isinstance(error, errors.Unavailable)
    assert len(error.message) <= 300
    assert "502" in str(error)


def test_retry_after_is_read_from_the_header_and_the_status() -> None:
    assert errors.from_response(429, b"", retry_after="7").retry_after == 7.0
    assert errors.from_response(429, status(429, retryAfterSeconds=3), retry_after="7").retry_after == 3.0
    assert errors.from_response(503, b"", retry_after="86400").retry_after == 60.0
    assert errors.from_response(503, status(503, retryAfterSeconds=10**400)).retry_after == 60.0
    assert errors.from_response(503, status(503, retryAfterSeconds=-1)).retry_after == 0.0
    for words in ("Wed, 21 Oct 2026 07:28:00 GMT", "²", "9" * 5000):
        assert errors.from_response(429, b"", retry_after=words).retry_after is None


def test_the_text_has_the_request_the_code_and_the_message() -> None:
    error = errors.from_response(404, status(404, "NotFound", 'pods "a" not found'), request="GET /api/v1/pods/a")
    assert str(error) == 'GET /api/v1/pods/a: 404 NotFound: pods "a" not found'


@pytest.mark.parametrize("tls", [" ssl:<ssl.SSLContext object at 0x7f05645c3380>", " ssl:default", " ssl:False", ""])
def test_the_reason_for_a_missing_answer_contains_no_tls_settings(tls: str) -> None:
    error = OSError(f"Cannot connect to host 127.0.0.1:1{tls} [Connect call failed ('127.0.0.1', 1)]")
    assert connection_words(error) == "Cannot connect to host 127.0.0.1:1 [Connect call failed ('127.0.0.1', 1)]"
    assert connection_words(TimeoutError()) == "TimeoutError"
    late = "Connection timeout to host https://10.0.0.1:6443/apis/authentication.k8s.io/v1/tokenreviews?fieldManager=me"
    assert connection_words(TimeoutError(late)) == "Connection timeout to host https://10.0.0.1:6443"
