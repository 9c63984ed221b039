"""AdmissionReview and ConversionReview, version v1, as the API server sends them and reads them.

The envelope is typed; the objects in it are plain dicts, since judging them is the work of others.
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
    """What was sent is not a review; the message says why."""


class GroupVersionKind(Struct, frozen=True):
    """A kind in a version."""

    group: str = ""
    version: str = ""
    kind: str = ""


class UserInfo(Struct, frozen=True):
    """Who asks."""

    username: str = ""


class AdmissionRequest(Struct, frozen=True, rename="camel"):
    """What a user asks to do. `operation` is CREATE, UPDATE, DELETE or CONNECT."""

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
    """A question of the API server."""

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
    """Why not, as far as clients of the API server read it."""

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
    """The request of a review. BadReview where it is not a review; RecursionError where it is nested too deeply to be read."""
    review: AdmissionReview = _read(_admission, body, ADMISSION_API, ADMISSION_KIND)
    return review.request


def read_conversion(body: bytes) -> ConversionRequest:
    """The objects of a review. BadReview where it is not a review; RecursionError where it is nested too deeply to be read."""
    review: ConversionReview = _read(_conversion, body, CONVERSION_API, CONVERSION_KIND)
    return review.request


def admission_answer(
    uid: str,
    refusal: ReviewStatus | None = None,
    *,
    patch: Sequence[KubeObject] = (),
    warnings: Sequence[str] = (),
) -> bytes:
    """The answer to a question: allowed, perhaps with a JSON patch, or refused with a status."""
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
    """All objects, converted, in the order in which they came."""
    return _encode(_ConversionAnswer(_ConversionResponse(uid, ReviewStatus("Success"), converted)))


def conversion_failure(uid: str, message: str) -> bytes:
    """Nothing was converted, and why."""
    return _encode(_ConversionAnswer(_ConversionResponse(uid, ReviewStatus("Failure", message))))


def _read(decoder: msgspec.json.Decoder[Any], body: bytes, api: str, kind: str) -> Any:
    try:
        review = decoder.decode(body)
    except msgspec.ValidationError as error:
        raise BadReview(f"not a review: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadReview(f"not JSON: {error}") from error
    if (review.api_version, review.kind) != (api, kind):
        raise BadReview(f"a {kind} of {api} is expected, not {review.kind} of {review.api_version}")
    return review
