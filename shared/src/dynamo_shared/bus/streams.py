"""The four streams of the wire. Every service declares the streams that it uses at its start; none is ever deleted.

The number of replicas depends on the installation (1 on a single server, 3 on a cluster), so the bus adds it.
"""

from dataclasses import dataclass
from enum import StrEnum

from dynamo_shared.wire import subjects

MINUTE = 60.0
HOUR = 60 * MINUTE
DAY = 24 * HOUR

TOMBSTONE_TTL = DAY
"""Seconds for which the tombstone of a deleted object stays in STATE, so that the stream stays bounded.

A day is far longer than any reader is disconnected. A reader that was disconnected longer misses nothing either: when
it returns, it reads all last messages again and removes objects that are not among them.
"""


class Retention(StrEnum):
    """When a stored message may be removed."""

    LIMITS = "limits"
    """If it is too old or the stream is too large."""
    WORK_QUEUE = "workqueue"
    """If its only consumer has acknowledged it."""


class Discard(StrEnum):
    """What a full stream discards when another message arrives."""

    OLD = "old"
    NEW = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSpec:
    """Desired configuration of a stream. Zero means no limit; times in seconds, sizes in bytes."""

    name: str
    subjects: tuple[str, ...]
    description: str
    retention: Retention = Retention.LIMITS
    discard: Discard = Discard.OLD
    max_age: float = 0
    max_messages: int = 0
    max_messages_per_subject: int = 0
    max_bytes: int = 0
    duplicate_window: float = 2 * MINUTE
    message_ttl: bool = False


STATE = StreamSpec(
    name="DYNAMO_STATE",
    subjects=(f"{subjects.STATE_PREFIX}.>",),
    description="Current Kubernetes objects: the last message of a subject is the object",
    max_messages_per_subject=1,
    # Long enough for the retries of a publish; every message in the window costs memory on the server.
    duplicate_window=30.0,
    message_ttl=True,
)

EVENTS = StreamSpec(
    name="DYNAMO_EVENTS",
    subjects=(f"{subjects.EVENT_PREFIX}.>",),
    description="Events, as CloudEvents",
    max_age=7 * DAY,
    # Limits the disk use if a client publishes without end; at 2 KiB per event this is two million events.
    max_bytes=4 * 1024**3,
)

COMMANDS = StreamSpec(
    name="DYNAMO_COMMANDS",
    subjects=(f"{subjects.COMMAND_PREFIX}.>",),
    description="Commands to services",
    retention=Retention.WORK_QUEUE,
    discard=Discard.NEW,
    max_messages=100_000,
    max_age=DAY,
)

ADVISORY_PREFIX = f"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{COMMANDS.name}"
"""Subject on which the server reports, with the consumer's name as another token, that a command was delivered for the
last time and never answered: its receiver died each time. The dead letter stream keeps the report until a consumer has
handled it.
"""

DEAD_LETTERS = StreamSpec(
    name="DYNAMO_DEAD_LETTERS",
    subjects=(f"{subjects.DEAD_LETTER_PREFIX}.>", f"{ADVISORY_PREFIX}.*"),
    description="Commands that failed after five deliveries, to inspect",
    max_age=30 * DAY,
    max_bytes=1024**3,
)

ALL: tuple[StreamSpec, ...] = (STATE, EVENTS, COMMANDS, DEAD_LETTERS)
