"""AdmissionReview and ConversionReview, version v1, in the API server's format.

The envelope is typed; the objects in it are plain dicts, because other modules check them.
"""

import base64
from collections.abc import Sequence
from typing import Any

import msgspec
from dynamo_shared.api.objects import KubeObject
from msgspec import UNSET, Struct, UnsetType

ADMISSION_API, ADMISSION_KIND = "admission.k8s.io/v1", "AdmissionReview"
CONVERSION_API, CONVERSION_KIND = "apiextensions.k8s.io/v1", "ConversionReview"


class BadReview(ValueError):
    """The body is not a review; the message says why."""


class GroupVersionKind(Struct, frozen=True):
    """A kind in a version."""

    group: str = ""
    version: str = ""
    kind: str = ""


class UserInfo(Struct, frozen=True):
    """The user of a request."""

    username: str = ""


class AdmissionRequest(Struct, frozen=True, rename="camel"):
    """The request of a user. `operation` is CREATE, UPDATE, DELETE or CONNECT."""

    uid: str
    kind: GroupVersionKind
    operation: str
    name: str = ""
    namespace: str = ""
    sub_resource: str = ""
    user_info: UserInfo = UserInfo()
    object: Any = None
    old_object: Any = None


class AdmissionReview(Struct, frozen=True, rename="camel"):
    """An admission review of the API server."""

    api_version: str
    kind: str
    request: AdmissionRequest


class ConversionRequest(Struct, frozen=True, rename="camel"):
    """Objects, and the desired apiVersion of all of them."""

    uid: str
    desired_api_version: str = msgspec.field(name="desiredAPIVersion")
    objects: list[KubeObject]


class ConversionReview(Struct, frozen=True, rename="camel"):
    """Objects to convert."""

    api_version: str
    kind: str
    request: ConversionRequest


class ReviewStatus(Struct, frozen=True, omit_defaults=True):
    """The reason of a refusal, with the fields that clients of the API server read."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0


class _AdmissionResponse(Struct, frozen=True, rename="camel"):
    uid: str
    allowed: bool
    status: ReviewStatus | UnsetType = UNSET
    patch_type: str | UnsetType = UNSET
    patch: str | UnsetType = UNSET
    warnings: Sequence[str] | UnsetType = UNSET


class _AdmissionAnswer(Struct, frozen=True, rename="camel"):
    response: _AdmissionResponse
    api_version: str = ADMISSION_API
    kind: str = ADMISSION_KIND


class _ConversionResponse(Struct, frozen=True, rename="camel"):
    uid: str
    result: ReviewStatus
    converted_objects: Sequence[KubeObject] | UnsetType = UNSET


class _ConversionAnswer(Struct, frozen=True, rename="camel"):
    response: _ConversionResponse
    api_version: str = CONVERSION_API
    kind: str = CONVERSION_KIND


_admission = msgspec.json.Decoder(AdmissionReview)
_conversion = msgspec.json.Decoder(ConversionReview)
_encode = msgspec.json.Encoder().encode


def read_admission(body: bytes) -> AdmissionRequest:
    """The request of a review. BadReview if the body is not a review; RecursionError if it is nested too deeply."""
    review: AdmissionReview = _read(_admission, body, ADMISSION_API, ADMISSION_KIND)
    return review.request


def read_conversion(body: bytes) -> ConversionRequest:
    """The objects of a review. BadReview if the body is not a review; RecursionError if it is nested too deeply."""
    review: ConversionReview = _read(_conversion, body, CONVERSION_API, CONVERSION_KIND)
    return review.request


def admission_answer(
    uid: str,
    refusal: ReviewStatus | None = None,
    *,
    patch: Sequence[KubeObject] = (),
    warnings: Sequence[str] = (),
) -> bytes:
    """The answer to a review: allowed, possibly with a JSON patch, or refused with a status."""
    response = _AdmissionResponse(
        uid,
        refusal is None,
        status=UNSET if refusal is None else refusal,
        patch_type="JSONPatch" if patch else UNSET,
        patch=base64.b64encode(_encode(patch)).decode() if patch else UNSET,
        warnings=warnings or UNSET,
    )
    return _encode(_AdmissionAnswer(response))


def conversion_answer(uid: str, converted: Sequence[KubeObject]) -> bytes:
    """All converted objects, in their original order."""
    return _encode(_ConversionAnswer(_ConversionResponse(uid, ReviewStatus("Success"), converted)))


def conversion_failure(uid: str, message: str) -> bytes:
    """The answer that nothing was converted, with the reason."""
    return _encode(_ConversionAnswer(_ConversionResponse(uid, ReviewStatus("Failure", message))))


def _read(decoder: msgspec.json.Decoder[Any], body: bytes, api: str, kind: str) -> Any:
    try:
        review = decoder.decode(body)
    except msgspec.ValidationError as error:
        raise BadReview(f"not a review: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadReview(f"not JSON: {error}") from error
    if (review.api_version, review.kind) != (api, kind):
        raise BadReview(f"expected {kind} of {api}, not {review.kind} of {review.api_version}")
    return review
