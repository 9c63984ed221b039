"""The four streams of the wire. Every service declares those it uses at its start; none is ever deleted.

Replicas are a matter of the installation (1 on a single server, 3 on a cluster), so the bus adds them.
"""

from dataclasses import dataclass
from enum import StrEnum

from dynamo_shared.wire import subjects

MINUTE = 60.0
HOUR = 60 * MINUTE
DAY = 24 * HOUR

TOMBSTONE_TTL = DAY
"""Seconds that the tombstone of a deleted object stays in STATE, so that the stream stays bounded.

A day: far longer than any reader is disconnected. A reader that was away even longer misses nothing either, because it
reads all last values again when it comes back and drops what is not among them.
"""


class Retention(StrEnum):
    """When a stored message may go."""

    LIMITS = "limits"
    """When it is too old or the stream too large."""
    WORK_QUEUE = "workqueue"
    """When its one consumer has acknowledged it."""


class Discard(StrEnum):
    """What a full stream does with one message more."""

    OLD = "old"
    NEW = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSpec:
    """What a stream must be like. Zero means no limit; times in seconds, sizes in bytes."""

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
    description="Kubernetes objects as they are now: the last message of a subject is the object",
    max_messages_per_subject=1,
    # Long enough for the retries of a publish; every message of the window costs the server memory.
    duplicate_window=30.0,
    message_ttl=True,
)

EVENTS = StreamSpec(
    name="DYNAMO_EVENTS",
    subjects=(f"{subjects.EVENT_PREFIX}.>",),
    description="What happened, as CloudEvents",
    max_age=7 * DAY,
    # Bounds the disk where something publishes without end; at 2 KiB an event this is two million events.
    max_bytes=4 * 1024**3,
)

COMMANDS = StreamSpec(
    name="DYNAMO_COMMANDS",
    subjects=(f"{subjects.COMMAND_PREFIX}.>",),
    description="What services are asked to do, each command for one of them",
    retention=Retention.WORK_QUEUE,
    discard=Discard.NEW,
    max_messages=100_000,
    max_age=DAY,
)

ADVISORY_PREFIX = f"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.{COMMANDS.name}"
"""Where the server says, with the consumer's name as one token more, that a command was delivered for the last time
and never answered: its receiver died each time. The dead letter stream keeps that until someone has dealt with it."""

DEAD_LETTERS = StreamSpec(
    name="DYNAMO_DEAD_LETTERS",
    subjects=(f"{subjects.DEAD_LETTER_PREFIX}.>", f"{ADVISORY_PREFIX}.*"),
    description="Commands that could not be carried out in five deliveries, for people to inspect",
    max_age=30 * DAY,
    max_bytes=1024**3,
)

ALL: tuple[StreamSpec, ...] = (STATE, EVENTS, COMMANDS, DEAD_LETTERS)
