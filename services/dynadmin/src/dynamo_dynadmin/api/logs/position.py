"""Where the reader of merged logs is in each of them: the id of a line. Pure.

Logs come side by side: of one container all lines may be read when another one's have only begun. The time of a line alone does
not say which older lines of others the reader lacks.
"""

import base64
import binascii
import hashlib
import struct
from collections.abc import Mapping
from typing import NamedTuple, Self

from dynamo_dynadmin.api.logs.reading import nanoseconds
from dynamo_dynadmin.api.logs.sources import ContainerStart

#: Places of a log of which the reader has no line yet: its last lines are due, as many as the caller asks for, or all.
LAST_LINES, ALL_LINES = 0, 1
_KEY = 6
_ENTRY = struct.Struct(f">{_KEY}sq")


class LogPosition(NamedTuple):
    """The newest line that was sent, and the place in each log that is read: the time of the line that the reader has of it."""

    newest: str
    places: Mapping[bytes, int]

    def __str__(self) -> str:
        at = nanoseconds(self.newest)
        if all(each == at for each in self.places.values()):
            return self.newest
        packed = b"".join(_ENTRY.pack(key, place) for key, place in self.places.items())
        return f"{self.newest}~{base64.urlsafe_b64encode(packed).decode()}"

    @classmethod
    def of(cls, text: str) -> Self | None:
        """The position that an id names; of a time alone, all logs are at it. None where it is not valid."""
        newest, _, packed = text.partition("~")
        if nanoseconds(newest) is None:
            return None
        try:
            entries = _ENTRY.iter_unpack(base64.b64decode(packed, altchars=b"-_", validate=True))
            places = {key: place for key, place in entries if place >= 0}
        except (binascii.Error, struct.error, ValueError):
            return None
        return cls(newest, places)


def key_of(start: ContainerStart) -> bytes:
    """The key of a container's start: two of one graph do not share one."""
    text = repr((start.uid, start.source.container, start.restarts))
    return hashlib.sha256(text.encode()).digest()[:_KEY]
