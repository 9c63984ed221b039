"""Errors of the bus, one class per decision of the callers.

An error has its own class only if a caller handles it differently. Everything that a later retry solves is
`BusUnavailableError`, whatever its cause: no connection, no answer in time, a server that is still starting.
"""


class BusError(Exception):
    """The bus could not do what was requested; retrying the same call does not help."""


class BusUnavailableError(BusError):
    """No answer, or none in time: retry later. A publish that raised this may still have been stored."""


class StreamNotFoundError(BusUnavailableError):
    """No stream accepts this subject: it was never declared, or the server lost it. Declare it, then retry."""


class WrongSequenceError(BusError):
    """The subject's last message is not the one that the publisher expected: another client has published."""


class StreamFullError(BusUnavailableError):
    """The stream refuses new messages until old ones are removed (commands: the work queue is at its limit)."""


class MessageTooLargeError(BusError):
    """The message is larger than the server accepts (its `max_payload`)."""


class BusDeniedError(BusError):
    """The NATS user may not publish on the subject in the message. `dynamoctl nats-config` prints the permissions."""


class BusClosedError(BusError):
    """The bus was closed by its owner; it sends and receives nothing more."""
