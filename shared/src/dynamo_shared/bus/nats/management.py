"""Creates and compares streams and consumers on the server, and reads single messages."""

from dataclasses import replace

import structlog
from nats.js import api
from nats.js.errors import APIError, NotFoundError

from dynamo_shared.bus.errors import BusError, StreamFullError, StreamNotFoundError
from dynamo_shared.bus.nats.session import TRANSLATED, NatsSession, translate
from dynamo_shared.bus.protocol import ConsumerSpec, Message, Start, StreamState
from dynamo_shared.bus.streams import StreamSpec

INACTIVE = 300.0
"""Seconds after which the server removes a reader's consumer that requests no more messages."""

INACTIVE_WHERE_RESUMED = 10.0
"""The same if a new consumer resumes at the reader's position, instead of reading all last messages again: many readers
read once and leave their consumers, and since 2.15 the server refuses more than 1,000 per stream.
"""

MOST_CONSUMERS = 10_000
"""Limit per stream. Each reader has one, such as a page that shows a graph's decisions; the server's default is 1,000."""

NAME_IN_USE, TOO_MANY_CONSUMERS = 10058, 10026

log = structlog.get_logger("dynamo.bus.nats")


def stream_config(spec: StreamSpec, replicas: int) -> api.StreamConfig:
    """A stream's configuration in the server's format."""
    return api.StreamConfig(
        name=spec.name,
        subjects=list(spec.subjects),
        description=spec.description,
        retention=api.RetentionPolicy(spec.retention.value),
        discard=api.DiscardPolicy(spec.discard.value),
        storage=api.StorageType.FILE,
        max_consumers=MOST_CONSUMERS,
        max_age=spec.max_age,
        max_msgs=spec.max_messages or -1,
        max_msgs_per_subject=spec.max_messages_per_subject or -1,
        max_bytes=spec.max_bytes or -1,
        duplicate_window=spec.duplicate_window,
        allow_direct=True,
        allow_msg_ttl=spec.message_ttl or None,
        num_replicas=replicas,
    )


COMPARED = (
    "subjects",
    "description",
    "retention",
    "discard",
    "storage",
    "max_consumers",
    "max_age",
    "max_msgs",
    "max_msgs_per_subject",
    "max_bytes",
    "duplicate_window",
    "allow_direct",
    "num_replicas",
)


def differences(desired: api.StreamConfig, observed: api.StreamConfig) -> list[str]:
    """Names of the settings in which a stream differs from the desired configuration."""
    names = [name for name in COMPARED if getattr(desired, name) != getattr(observed, name)]
    if desired.allow_msg_ttl and not observed.allow_msg_ttl:
        names.append("allow_msg_ttl")
    return names


async def declare(session: NatsSession, spec: StreamSpec, replicas: int, first_member: str = "") -> None:
    """Create or update the stream. If the server refuses a change, the stream is used as it is, with a warning.

    `first_member`: tag of the server from which a cluster grew. A single server that joins a cluster keeps its streams
    on its disk, and half a minute later deletes those that the cluster does not know. A stream that is created on that
    server with one copy keeps all its messages, and gets its other copies afterwards.
    """
    desired = stream_config(spec, replicas)
    # Only one service may create streams; others try it if the stream is missing.
    session.expect_denial(_create(spec.name))
    try:
        try:
            await _declare(session, spec.name, desired, first_member)
        except APIError as error:
            if error.err_code != TOO_MANY_CONSUMERS:
                raise
            # The account may allow fewer consumers.
            await _declare(session, spec.name, replace(desired, max_consumers=-1), first_member)
    except APIError as error:
        # Another service has just created the stream.
        if error.err_code != NAME_IN_USE:
            raise _refused(spec, translate(error)) from error
    except TRANSLATED as error:
        if session.is_denied(_create(spec.name)):
            raise StreamNotFoundError(f"stream {spec.name} does not exist; the watcher creates it") from error
        raise translate(error) from error


def _refused(spec: StreamSpec, error: BusError) -> BusError:
    if not isinstance(error, StreamFullError):
        return error
    return StreamFullError(
        f"NATS has no space for stream {spec.name}, which may have {spec.max_bytes / 1024**3:g} GiB: {error}; free space on "
        "its disk, enlarge its volume, or set a larger jetstream.max_file_store"
    )


def _create(name: str) -> str:
    return f"$JS.API.STREAM.CREATE.{name}"


async def _declare(session: NatsSession, name: str, desired: api.StreamConfig, first_member: str) -> None:
    """Create or update the stream. APIError if the server refuses, or the account allows fewer consumers."""
    try:
        observed = (await session.call(session.js.stream_info, name)).config
    except NotFoundError:
        if session.is_denied(_create(name)):
            raise StreamNotFoundError(f"stream {name} does not exist; the watcher creates it") from None
        made = desired
        if first_member:
            # A single server ignores the placement.
            made = replace(desired, num_replicas=1, placement=api.Placement(tags=[first_member]))
        observed = (await session.call(session.js.add_stream, made)).config
        log.info("stream created", stream=name)
    if not session.limits_consumers:
        desired = replace(desired, max_consumers=observed.max_consumers)
    names = differences(desired, observed)
    if not names or session.is_denied(f"$JS.API.STREAM.UPDATE.{name}"):
        return
    try:
        await session.call(session.js.update_stream, desired)
        log.info("stream updated", stream=name, settings=names)
    except APIError as error:
        if error.err_code == TOO_MANY_CONSUMERS and "max_consumers" in names:
            raise
        log.warning(
            "stream has other settings and cannot be updated", stream=name, settings=names, error=error.description
        )


async def state(session: NatsSession, spec: StreamSpec) -> StreamState:
    """State of the stream; its incarnation is its time of creation."""
    try:
        info = await session.call(session.js.stream_info, spec.name)
    except NotFoundError as error:
        raise StreamNotFoundError(f"stream {spec.name} does not exist") from error
    except TRANSLATED as error:
        raise translate(error) from error
    return StreamState(str(info.created), info.state.messages, info.state.first_seq, info.state.last_seq)


async def remove(session: NatsSession, spec: StreamSpec, sequence: int) -> None:
    """Remove a message."""
    try:
        await session.call(session.js.delete_msg, spec.name, sequence)
    except NotFoundError:
        return
    except APIError as error:
        # The server reports "no message found" as status 400 here.
        if await stored(session, spec, seq=sequence) is not None:
            raise translate(error) from error
    except TRANSLATED as error:
        raise translate(error) from error


async def make_reader(
    session: NatsSession, spec: StreamSpec, filters: list[str], start: Start, *, after: int, headers_only: bool
) -> tuple[str, int]:
    """Create a consumer for one reader, which the server removes when it is unused. Returns its name and how many
    messages wait.

    `after`: for `Start.NEW`, the sequence after which to start.
    """
    config = api.ConsumerConfig(
        ack_policy=api.AckPolicy.NONE,
        deliver_policy={
            Start.LAST_PER_SUBJECT: api.DeliverPolicy.LAST_PER_SUBJECT,
            Start.ALL: api.DeliverPolicy.ALL,
            Start.NEW: api.DeliverPolicy.BY_START_SEQUENCE,
        }[start],
        opt_start_seq=after + 1 if start is Start.NEW else None,
        filter_subjects=filters,
        headers_only=headers_only or None,
        inactive_threshold=INACTIVE if start is Start.LAST_PER_SUBJECT else INACTIVE_WHERE_RESUMED,
        mem_storage=True,
        num_replicas=1,
    )
    return await _make(session, spec, config)


async def make_durable(session: NatsSession, spec: ConsumerSpec) -> str:
    """Create or update the durable consumer. Returns its name."""
    config = api.ConsumerConfig(
        name=spec.name,
        durable_name=spec.name,
        ack_policy=api.AckPolicy.EXPLICIT,
        ack_wait=spec.ack_wait,
        max_deliver=spec.max_deliver,
        max_ack_pending=spec.max_unacknowledged,
        filter_subjects=list(spec.subjects),
    )
    name, _ = await _make(session, spec.stream, config)
    return name


async def _make(session: NatsSession, spec: StreamSpec, config: api.ConsumerConfig) -> tuple[str, int]:
    try:
        info = await session.call(session.js.add_consumer, spec.name, config)
    except NotFoundError as error:
        raise StreamNotFoundError(f"stream {spec.name} does not exist") from error
    except TRANSLATED as error:
        raise translate(error) from error
    return info.name, info.num_pending or 0


async def stored(
    session: NatsSession, spec: StreamSpec, *, subject: str | None = None, seq: int | None = None
) -> Message | None:
    """The last message of a subject, or the message with a sequence number, from the stream's leader."""
    try:
        raw = await session.call(session.js.get_msg, spec.name, seq=seq, subject=subject, direct=False)
    except NotFoundError as error:
        if isinstance(missing := translate(error), StreamNotFoundError):
            raise missing from error
        return None
    except TRANSLATED as error:
        raise translate(error) from error
    if raw.subject is None or raw.seq is None:
        raise BusError("NATS sent a stored message without subject or sequence")
    return Message(raw.subject, raw.data or b"", raw.headers or {}, raw.seq)
