"""Objects that STATE does not take as they are: reported to the operator of the platform, and to the object's owner."""

from collections.abc import Callable

import structlog

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.bus import metrics, streams
from dynamo_shared.bus.errors import BusError, MessageTooLargeError
from dynamo_shared.bus.sizes import MAX_PAYLOAD
from dynamo_shared.state import messages
from dynamo_shared.state.publisher.outbox import Outbox, StateMessage

TOO_LARGE = (
    "the platform does not act on this version of the object: it is larger, compressed, than its message bus takes; "
    "make it smaller, or ask who runs the platform to raise max_payload of its NATS server"
)
"""For the owner of an object, who sees neither the watcher's log nor its /readyz."""

log = structlog.get_logger("dynamo.bus.state")


class Refusals:
    """`on_change` gets a sentence about all refusals, or an empty one; `on_too_large` an object and a sentence."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._refused: dict[str, tuple[StateMessage, str]] = {}
        """by subject, each with the server's reason"""
        self.on_change: Callable[[str], None] = lambda _: None
        self.on_too_large: Callable[[KubeObject, str], None] = lambda _obj, _words: None

    def add(self, message: StateMessage, error: BusError) -> None:
        """A message was refused for good."""
        log.error("object refused by STATE", subject=message.subject, error=str(error))
        self._refused[message.subject] = message, str(error)
        self.on_change(self._words())
        if not message.deleted and isinstance(error, MessageTooLargeError):
            self.on_too_large(messages.decode_object(message.payload, message.headers), TOO_LARGE)
        metrics.PUBLISH_ERRORS.labels(streams.STATE.name, "refused").inc()

    def remove(self, subject: str) -> None:
        """A message of this subject was taken, or STATE says already what there is to say of it."""
        if self._refused.pop(subject, None) is not None:
            self.on_change(self._words())

    def retry(self) -> None:
        """The server was started again, and may take more than before: what it refused waits once more."""
        for subject, (message, _) in self._refused.items():
            if self._outbox.newest(subject) is None:
                self._outbox.add(message)

    def clear(self) -> None:
        """Nothing was published yet."""
        if self._refused:
            self._refused.clear()
            self.on_change("")

    def _words(self) -> str:
        if not self._refused:
            return ""
        _, reason = next(iter(self._refused.values()))
        return (
            f"{len(self._refused)} objects are in STATE as they were before; the first: {reason[:300]}; "
            f"max_payload of the NATS server must be {MAX_PAYLOAD} (dynamoctl nats-config)"
        )
