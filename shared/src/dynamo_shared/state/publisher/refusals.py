"""Objects that STATE refuses: reported to the operator of the platform and to the object's owner."""

from collections.abc import Callable

import structlog

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.bus import metrics, streams
from dynamo_shared.bus.errors import BusError, MessageTooLargeError
from dynamo_shared.bus.sizes import MAX_PAYLOAD
from dynamo_shared.state import messages
from dynamo_shared.state.publisher.outbox import Outbox, StateMessage

TOO_LARGE = (
    "the platform ignores this version of the object: compressed, it is larger than the maximum of the platform's NATS "
    "server; make it smaller, or ask the administrator of the platform to raise max_payload of the NATS server"
)
"""For the owner of an object, who reads neither the watcher's log nor its /readyz."""

KEPT_BYTES = 64 << 20
"""Limit of kept refused messages. A server with a small max_payload may refuse most objects of a cluster."""

log = structlog.get_logger("dynamo.bus.state")


class Refusals:
    """`on_change` gets a sentence about all refusals, or ""; `on_too_large` gets an object and a sentence."""

    def __init__(self, outbox: Outbox, declare_lost: Callable[[str], None]) -> None:
        self._outbox = outbox
        self._declare_lost = declare_lost
        self._refused: dict[str, tuple[StateMessage | None, str]] = {}
        """by subject, each with the server's reason; without the message if the kept ones exceed the limit"""
        self._kept = 0
        self.on_change: Callable[[str], None] = lambda _: None
        self.on_too_large: Callable[[KubeObject, str], None] = lambda _obj, _words: None

    def add(self, message: StateMessage, error: BusError) -> None:
        """Record that the server refused a message permanently."""
        log.error("object refused by NATS", subject=message.subject, error=str(error))
        self._forget(message.subject)
        fits = self._kept + message.size <= KEPT_BYTES
        self._refused[message.subject] = message if fits else None, str(error)[:300]
        self._kept += message.size if fits else 0
        self.on_change(self._words())
        if not message.deleted and isinstance(error, MessageTooLargeError):
            self.on_too_large(messages.decode_object(message.payload, message.headers), TOO_LARGE)
        metrics.PUBLISH_ERRORS.labels(streams.STATE.name, "refused").inc()

    def remove(self, subject: str) -> None:
        """Record that a message of this subject was accepted, or that STATE is already up to date."""
        if self._forget(subject):
            self.on_change(self._words())

    def retry(self) -> None:
        """Queue the refused messages again: the server was restarted, and may accept more than before.

        If some refused messages were not kept, everything is published again.
        """
        kept = [message for message, _ in self._refused.values() if message is not None]
        if len(kept) < len(self._refused):
            self._declare_lost("refused objects are published again after a restart of NATS")
            return
        for message in kept:
            if self._outbox.newest(message.subject) is None:
                self._outbox.add(message)

    def clear(self) -> None:
        """Forget all refusals."""
        if self._refused:
            self._refused.clear()
            self._kept = 0
            self.on_change("")

    def _forget(self, subject: str) -> bool:
        """Returns whether a message of the subject was refused."""
        message, reason = self._refused.pop(subject, (None, None))
        self._kept -= message.size if message is not None else 0
        return reason is not None

    def _words(self) -> str:
        if not self._refused:
            return ""
        _, reason = next(iter(self._refused.values()))
        return (
            f"NATS refused new versions of {len(self._refused)} objects; the first: {reason}; "
            f"set max_payload of the NATS server to {MAX_PAYLOAD} (dynamoctl nats-config)"
        )
