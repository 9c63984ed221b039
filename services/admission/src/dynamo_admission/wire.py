"""AdmissionReview and ConversionReview, version v1, in the API server's format.

The envelope is typed. The objects in it stay encoded until their turn, and are then plain dicts, because other modules
check them.
"""

import base64
from collections.abc import Iterator, Sequence
from typing import Any, Self

import msgspec
from dynamo_shared.api.objects import KubeObject
from msgspec import UNSET, Raw, Struct, UnsetType

ADMISSION_API, ADMISSION_KIND = "admission.k8s.io/v1", "AdmissionReview"
CONVERSION_API, CONVERSION_KIND = "apiextensions.k8s.io/v1", "ConversionReview"
_NULL = Raw(b"null")


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

    def decoded(self) -> Self:
        """The request with decoded objects, which take up to twenty times as many bytes.

        BadReview if they are not JSON; RecursionError if they are nested too deeply.
        """
        return msgspec.structs.replace(self, object=_value(self.object), old_object=_value(self.old_object))


class _EncodedRequest(AdmissionRequest, frozen=True, rename="camel"):
    object: Raw = _NULL
    old_object: Raw = _NULL


class AdmissionReview(Struct, frozen=True, rename="camel"):
    """An admission review of the API server."""

    api_version: str
    kind: str
    request: _EncodedRequest


class ConversionRequest(Struct, frozen=True, rename="camel"):
    """Encoded objects, and the desired apiVersion of all of them."""

    uid: str
    desired_api_version: str = msgspec.field(name="desiredAPIVersion")
    objects: list[Raw]

    def parts(self, size: int) -> Iterator[Self]:
        """The request as requests for some of its objects, in order: each for up to `size` bytes, or for one object."""
        some, total = list[Raw](), 0
        for each in self.objects:
            if some and total + len(each) > size:
                yield msgspec.structs.replace(self, objects=some)
                some, total = [], 0
            some.append(each)
            total += len(each)
        yield msgspec.structs.replace(self, objects=some)

    def decoded(self) -> Iterator[KubeObject]:
        """The objects, one after the other. BadReview if one is not an object; RecursionError as above."""
        for each in self.objects:
            obj = _value(each)
            if not isinstance(obj, dict):
                raise BadReview("not a review: an object is expected")
            yield obj

    def kind(self) -> str:
        """The kind of the first object, because the API server converts objects of one kind; "" if it has none."""
        return _outline(self.objects[0]).kind if self.objects else ""

    def namespace(self) -> str:
        """The namespace of the objects; "" if they are of several. The API server sends them in order."""
        ends = {_outline(each).metadata.namespace for each in (*self.objects[:1], *self.objects[-1:])}
        return ends.pop() if len(ends) == 1 else ""


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
    converted_objects: Sequence[Raw] | UnsetType = UNSET


class _ConversionAnswer(Struct, frozen=True, rename="camel"):
    response: _ConversionResponse
    api_version: str = CONVERSION_API
    kind: str = CONVERSION_KIND


class _PlacedMetadata(Struct, frozen=True):
    namespace: str = ""


class _Place(Struct, frozen=True):
    kind: str = ""
    metadata: _PlacedMetadata = _PlacedMetadata()


_decode = msgspec.json.Decoder().decode
_decode_outline = msgspec.json.Decoder(_Place).decode
_admission = msgspec.json.Decoder(AdmissionReview)
_conversion = msgspec.json.Decoder(ConversionReview)
_encode = msgspec.json.Encoder().encode


def read_admission(body: bytes) -> AdmissionRequest:
    """The request of a review, with encoded objects. BadReview if the body is not a review; RecursionError if it is nested
    too deeply.
    """
    review: AdmissionReview = _read(_admission, body, ADMISSION_API, ADMISSION_KIND)
    return review.request


def read_conversion(body: bytes) -> ConversionRequest:
    """The encoded objects of a review; errors as above."""
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


def encoded(obj: KubeObject) -> Raw:
    """A converted object as it is sent."""
    return Raw(_encode(obj))


def conversion_answer(uid: str, converted: Sequence[Raw]) -> bytes:
    """All converted objects, encoded, in their original order."""
    return _encode(_ConversionAnswer(_ConversionResponse(uid, ReviewStatus("Success"), converted)))


def conversion_failure(uid: str, message: str) -> bytes:
    """The answer that nothing was converted, with the reason."""
    return _encode(_ConversionAnswer(_ConversionResponse(uid, ReviewStatus("Failure", message))))


def _value(content: Raw) -> Any:
    try:
        return _decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadReview(f"not JSON: {error}") from error


def _outline(content: Raw) -> _Place:
    """What identifies an object, without decoding the rest; empty if it is invalid, which `decoded` reports."""
    try:
        return _decode_outline(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Place()


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
