"""What a server accepts, checked before sending: NATS ends a connection that sends more, and with it all other work on it."""

from collections.abc import Mapping

from dynamo_shared.bus.errors import MessageTooLargeError

#: Bytes of payload and headers together, where the server says nothing else: its own default.
LARGEST_MESSAGE = 1 << 20
MAX_PAYLOAD = 4 << 20
"""Bytes of one message that the platform's NATS takes: an object of the API server's limit, 1.5 MiB, fits with its headers also
where it does not compress, and as JSON is longer than as the API server stores it."""
#: Bytes of a subject. The server's line of 4,096 also has the reply's subject and two sizes.
LONGEST_SUBJECT = 3840
#: Bytes of a header besides its name and value, and of the lines around all of them.
_LINE, _AROUND = 4, 16


def check_size(subject: str, payload: bytes, headers: Mapping[str, str] | None, largest: int = LARGEST_MESSAGE) -> None:
    """MessageTooLargeError for a message that no server with this limit, in bytes, takes."""
    if len(subject) > LONGEST_SUBJECT:
        raise MessageTooLargeError(
            f"{subject[:80]}...: a subject of {len(subject)} bytes is more than the server takes"
        )
    size = len(payload) + _AROUND
    if headers:
        text = "".join([*headers, *headers.values()])
        # Most are ASCII, and counting is cheaper than encoding.
        size += len(headers) * _LINE + (len(text) if text.isascii() else len(text.encode()))
    if size > largest:
        raise MessageTooLargeError(f"{subject}: {size} bytes are more than the server takes")
