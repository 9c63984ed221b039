"""JSON that a tenant stored or that a pod answered: bounded in size, depth, values and the size of numbers."""

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
    """A text is not JSON, or more of it than is read. The message never repeats the text."""


def decode(text: str | bytes, limits: ReadLimits = MANIFEST) -> Any:
    """The value of a text. InvalidJson if it is not JSON, or exceeds `limits`."""
    _check_length(text, limits)
    try:
        # Decoding is linear in the bytes, and takes 10 ms for each million.
        value = msgspec.json.decode(text)
        check_bounds(value, limits)
    except _UNREADABLE as error:
        raise _invalid(error, limits) from error
    return value


def decode_as(text: str, type_: type[T], limits: ReadLimits = SETTINGS) -> T:
    """The value of a text as a msgspec type, which bounds it. InvalidJson if it is not such a value, or too long.

    The decoder skips fields that the type does not have, without building their values: a service may read thousands
    of such texts at once.
    """
    _check_length(text, limits)
    try:
        value: T = _decoder(cast("Any", type_)).decode(text)
    except _UNREADABLE as error:
        raise _invalid(error, limits) from error
    return value


def annotated(obj: KubeObject, name: str, type_: type[T]) -> T:
    """The value of an annotation as a msgspec type; an empty value if the annotation is absent or does not fit."""
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
    # A message of msgspec's names a place in the text, and no part of it.
    return InvalidJson(str(error)[:200])
