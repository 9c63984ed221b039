"""What can go wrong on the bus, as the decisions that callers make.

Only errors that someone handles in a way of its own have a class. Everything that "again, later" cures is
`BusUnavailableError`, whatever its cause: no connection, no answer in time, a server that is still starting.
"""


class BusError(Exception):
    """Something the bus was asked for did not happen; retrying the same call does not help."""


class BusUnavailableError(BusError):
    """No answer, or none in time: try again later. A publish that raised this may still have been stored."""


class StreamNotFoundError(BusUnavailableError):
    """No stream takes this subject: it was never declared, or the server lost it. Declare it, then try again."""


class WrongSequenceError(BusError):
    """The last message of the subject is not the one that the publisher expected: someone else has published."""


class StreamFullError(BusUnavailableError):
    """The stream refuses new messages until old ones are gone (commands: the work queue is at its limit)."""


class MessageTooLargeError(BusError):
    """The message is larger than the server takes (its `max_payload`)."""


class BusDeniedError(BusError):
    """The NATS user may not publish on the subject; the message names it. `dynamoctl nats-config` prints who may."""


class BusClosedError(BusError):
    """The bus was closed by its owner; nothing more will be sent or received."""
