"""Checks size limits before sending: NATS closes a connection that exceeds them, and with it all other work on it."""

from collections.abc import Mapping

from dynamo_shared.bus.errors import MessageTooLargeError

#: Bytes of payload and headers together, if the server reports no limit: its default.
LARGEST_MESSAGE = 1 << 20
MAX_PAYLOAD = 4 << 20
"""Limit, in bytes, of one message on the platform's NATS. An object at the API server's limit, 1.5 MiB, fits with its
headers even if it does not compress, and although its JSON is longer than its stored form.
"""
#: Bytes of a subject. The server's line limit of 4,096 also includes the reply subject and two sizes.
LONGEST_SUBJECT = 3840
#: Bytes of a header in addition to its name and value, and of the lines around all headers.
_LINE, _AROUND = 4, 16


def check_size(subject: str, payload: bytes, headers: Mapping[str, str] | None, largest: int = LARGEST_MESSAGE) -> None:
    """MessageTooLargeError for a message that a server with this limit, in bytes, refuses."""
    if len(subject) > LONGEST_SUBJECT:
        raise MessageTooLargeError(
            f"{subject[:80]}...: the subject has {len(subject)} bytes; the maximum is {LONGEST_SUBJECT}"
        )
    size = len(payload) + _AROUND
    if headers:
        text = "".join([*headers, *headers.values()])
        # Most headers are ASCII, and counting is cheaper than encoding.
        size += len(headers) * _LINE + (len(text) if text.isascii() else len(text.encode()))
    if size > largest:
        raise MessageTooLargeError(f"{subject}: {size} bytes exceed the server's max_payload of {largest}")
