"""The position of a reader in each of several merged logs: the id of a line. Pure.

Logs arrive in parallel: all lines of one container may be read when another's have only begun. So the time of a line
alone does not say which older lines of other logs the reader lacks.
"""

import base64
import binascii
import hashlib
import struct
from collections.abc import Mapping
from typing import NamedTuple, Self

from dynamo_dynadmin.api.logs.container_log import nanoseconds
from dynamo_dynadmin.api.logs.sources import ContainerStart

#: Positions of a log from which the reader has no line yet: its last lines must be sent, as many as the caller
#: requested, or all.
LAST_LINES, ALL_LINES = 0, 1
_KEY = 6
_ENTRY = struct.Struct(f">{_KEY}sq")


class LogPosition(NamedTuple):
    """The newest sent line, and the position in each log that is read: the time of its last line that the
    reader has.
    """

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
        """The position in an id; if the id is only a time, all logs are at this time. None if it is not valid."""
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
    """The key of a container's start: distinct for all starts of one graph."""
    text = repr((start.uid, start.source.container, start.restarts))
    return hashlib.sha256(text.encode()).digest()[:_KEY]
