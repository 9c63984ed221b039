"""JSON that a tenant stored or that a pod answered: bounded in size, depth, values and the size of numbers."""

from typing import Any, TypeVar

import msgspec

from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.untrusted.limits import MANIFEST, SETTINGS, ReadLimits, check_bounds

T = TypeVar("T")


class InvalidJson(ValueError):
    """A text is not JSON, or more of it than is read. The message never repeats the text."""


def decode(text: str | bytes, limits: ReadLimits = MANIFEST) -> Any:
    """The value of a text. InvalidJson where it is not JSON, or more than `limits` allow."""
    if len(text) > limits.characters:
        raise InvalidJson(f"longer than {limits.characters} characters")
    try:
        # Decoding is linear in the bytes, and takes 10 ms for each million.
        value = msgspec.json.decode(text)
        check_bounds(value, limits)
    except RecursionError as error:
        raise InvalidJson(f"nested more than {limits.depth} levels deep") from error
    except InvalidManifest as error:
        raise InvalidJson(error.errors[0].message) from error
    except (msgspec.DecodeError, ValueError) as error:
        # A message of msgspec's names a place in the text, and no part of it.
        raise InvalidJson(str(error)[:200]) from error
    return value


def decode_as(text: str | bytes, type_: type[T], limits: ReadLimits = MANIFEST) -> T:
    """The value of a text as a msgspec type. InvalidJson where it is not such a value, or more than `limits` allow."""
    value = decode(text, limits)
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        raise InvalidJson(str(error)[:200]) from error


def annotated(obj: KubeObject, name: str, type_: type[T]) -> T:
    """The value of an annotation as a msgspec type; an empty one where there is none, or it is not such a value."""
    try:
        return decode_as(obj["metadata"].get("annotations", {}).get(name) or "{}", type_, SETTINGS)
    except InvalidJson:
        return msgspec.convert({}, type_)
