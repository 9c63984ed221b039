"""JSON that a tenant stored or that a pod returned: limited in size, depth, number of values, and size of numbers."""

from collections.abc import Hashable
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.untrusted.limits import MANIFEST, SETTINGS, ReadLimits, check_bounds

T = TypeVar("T")


_UNREADABLE = (RecursionError, InvalidManifest, msgspec.DecodeError, ValueError)


class InvalidJson(ValueError):
    """A text is not JSON, or exceeds a limit. The message never contains the text."""


def decode(text: str | bytes, limits: ReadLimits = MANIFEST) -> Any:
    """The value of a JSON text. Raises InvalidJson if it is not JSON, or exceeds `limits`."""
    _check_length(text, limits)
    try:
        # Decoding takes linear time, 10 ms for 1 MB.
        value = msgspec.json.decode(text)
        check_bounds(value, limits)
    except _UNREADABLE as error:
        raise _invalid(error, limits) from error
    return value


def decode_as(text: str, type_: type[T]) -> T:
    """The value of a JSON text as a msgspec type. Raises InvalidJson if it does not match the type, or is too long.

    The decoder skips fields that the type does not have, which is fast for thousands of texts.
    """
    _check_length(text, SETTINGS)
    try:
        value: T = _decoder(cast("Any", type_)).decode(text)
    except _UNREADABLE as error:
        raise _invalid(error, SETTINGS) from error
    return value


def annotated(obj: KubeObject, name: str, type_: type[T]) -> T:
    """The value of an annotation as a msgspec type; an empty value if the annotation is missing or invalid."""
    try:
        return decode_as(obj["metadata"].get("annotations", {}).get(name) or "{}", type_)
    except InvalidJson:
        return msgspec.convert({}, type_)


@cache
def _decoder(type_: Hashable) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type_)


def _check_length(text: str | bytes, limits: ReadLimits) -> None:
    if len(text) > limits.characters:
        raise InvalidJson(f"longer than {limits.characters} characters")


def _invalid(error: Exception, limits: ReadLimits) -> InvalidJson:
    if isinstance(error, RecursionError):
        return InvalidJson(f"nested more than {limits.depth} levels deep")
    if isinstance(error, InvalidManifest):
        return InvalidJson(error.errors[0].message)
    # Messages of msgspec contain the position in the text, but no part of it.
    return InvalidJson(str(error)[:200])
