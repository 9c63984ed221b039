"""Sends commands to other services and executes received ones: at least once, with answers, retries and dead letters.

A command has one of these outcomes:

1. Its handler returns: `command.completed` is published on EVENTS, and the command is acknowledged.
2. Its handler raises `CommandRefusedError`, because the command can never succeed: `command.failed` is published, and
   the command is acknowledged. There is no dead letter: the sender has its answer.
3. Its handler raises anything else: the command is retried after a growing delay. After the last delivery it is copied
   to the dead letters, `command.failed` is published, and it is acknowledged.
4. It cannot be decoded: it goes to the dead letters at once.
5. Its receiver shuts down before it is done: the command is given back, and delivered again a moment later.
6. Its receiver dies at each delivery: the server reports this after the last delivery, and a consumer then does as in
   (3).

A command is acknowledged when its answer is stored, so that a receiver's failure loses no answer. A command may be
executed more than once: handlers are idempotent, by the command's `id` if necessary.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

import msgspec
import structlog
from opentelemetry import trace

from dynamo_shared.aio import either, ended, endless
from dynamo_shared.bus import metrics, streams, tracing
from dynamo_shared.bus.errors import BusError, BusUnavailableError, MessageTooLargeError, StreamNotFoundError
from dynamo_shared.bus.events import EventPublisher
from dynamo_shared.bus.protocol import Bus, ConsumerSpec, Delivery, Message, Start
from dynamo_shared.bus.streams import StreamSpec
from dynamo_shared.wire import cloudevents, subjects
from dynamo_shared.wire.specifications import COMMANDS, find, fit
from dynamo_shared.wire.specifications.base import CommandSpec
from dynamo_shared.wire.specifications.platform import COMMAND, CommandResult

MAX_DELIVERIES = 5

RETRY_DELAYS = (1.0, 5.0, 15.0, 60.0)
"""Seconds before the second to the fifth delivery."""

ACK_WAIT = 30.0
"""Seconds without a sign of progress after which a command is delivered to another receiver."""

CONCURRENCY = 8

LONGEST_ID = 256
"""Characters of a command's id, which becomes a token of its answer's subject: each may take nine bytes there."""

LONGEST_ANSWER = 8192
"""Characters of an answer's text. The text may repeat the command, which may be as large as the server accepts."""


class Answered(NamedTuple):
    """What a handler reports about a command that it executed: a reason for programs, and a message for people."""

    reason: str
    message: str


Handler: TypeAlias = Callable[[cloudevents.Event, Any], Awaitable[Answered | str | None]]
"""Gets the command and its data, as the Struct of its specification; returns what the answer reports, or None."""

log = structlog.get_logger("dynamo.bus.commands")
tracer = trace.get_tracer("dynamo.bus")


class CommandRefusedError(Exception):
    """A handler raises it if the command can never succeed; the text goes into the answer."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def specification(service: str, verb: str) -> CommandSpec:
    """The specification of a service's command; KeyError if the table has none."""
    for spec in COMMANDS:
        if (spec.service, spec.verb) == (service, verb):
            return spec
    raise KeyError(f"{service} has no command {verb}")


def consumer_name(cluster: str, service: str) -> str:
    """Name of a service's durable consumer. NATS accepts no dots there; percent signs are safe."""
    return f"{subjects.encode(cluster)}-{subjects.encode(service)}"


class CommandSender:
    """Sends commands to the services of one cluster."""

    def __init__(self, bus: Bus, cluster: str) -> None:
        self._bus = bus
        self._cluster = cluster

    def command(
        self, service: str, verb: str, namespace: str, data: msgspec.Struct | Mapping[str, Any], request: str
    ) -> cloudevents.CloudEvent[Any]:
        """The command as it is sent. `request` identifies it: the same `request` twice is the same command."""
        spec = specification(service, verb)
        return cloudevents.CloudEvent[Any](
            specversion="1.0",
            id=cloudevents.event_id(self._cluster, namespace, spec.type, request),
            source=cloudevents.source(self._cluster, namespace),
            type=spec.type,
            subject=f"{service}/{verb}",
            time=cloudevents.timestamp(datetime.now(UTC)),
            data=fit(data, spec.data),
            datacontenttype="application/json",
            dataschema=cloudevents.schema_url(spec.type),
            traceparent=tracing.traceparent(),
        )

    async def send(
        self, service: str, verb: str, namespace: str, data: msgspec.Struct | Mapping[str, Any], *, request: str
    ) -> str:
        """Send a command and return its id once it is stored."""
        command = self.command(service, verb, namespace, data, request)
        await self._publish(service, verb, namespace, command)
        return command.id

    async def ask(
        self,
        service: str,
        verb: str,
        namespace: str,
        data: msgspec.Struct | Mapping[str, Any],
        *,
        request: str,
        timeout: float,
    ) -> tuple[bool, CommandResult]:
        """Send a command and wait for its answer: whether it was executed, and the result. TimeoutError without one."""
        command = self.command(service, verb, namespace, data, request)
        pattern = subjects.event_filter(self._cluster, namespace=namespace, kind=COMMAND, name=command.id)
        # All answers, not only new ones: the same request may have been answered before.
        async with asyncio.timeout(timeout):
            answers = await self._bus.subscribe(streams.EVENTS, [pattern], start=Start.ALL)
            try:
                await self._publish(service, verb, namespace, command)
                async for item in answers:
                    if isinstance(item, Message):
                        answer = cloudevents.decode(item.payload)
                        completed = answer.type == find(COMMAND, "completed").type
                        return completed, msgspec.convert(answer.data, CommandResult)
            finally:
                await answers.close()
        raise TimeoutError

    async def _publish(self, service: str, verb: str, namespace: str, command: cloudevents.CloudEvent[Any]) -> None:
        subject = subjects.command_subject(self._cluster, namespace, service, verb)
        payload, headers = cloudevents.encode(command), cloudevents.mirrored_headers(command)
        await _publish(self._bus, streams.COMMANDS, subject, payload, headers=headers, msg_id=command.id)


class CommandConsumer:
    """Executes the commands for one service. Replicas share them. `publisher` sends the answers."""

    def __init__(
        self,
        bus: Bus,
        cluster: str,
        service: str,
        handlers: Mapping[str, Handler],
        publisher: EventPublisher,
        *,
        ack_wait: float = ACK_WAIT,
        max_deliveries: int = MAX_DELIVERIES,
        delays: tuple[float, ...] = RETRY_DELAYS,
        concurrency: int = CONCURRENCY,
    ) -> None:
        self._bus = bus
        self._service = service
        self._handlers = {verb: (specification(service, verb), handler) for verb, handler in handlers.items()}
        self._publisher = publisher
        self._cluster = cluster
        self._ack_wait = ack_wait
        self._max_deliveries = max_deliveries
        self._delays = delays
        self._concurrency = concurrency
        name = consumer_name(cluster, service)
        self._spec = ConsumerSpec(
            stream=streams.COMMANDS,
            name=name,
            subjects=(subjects.command_filter(cluster, service),),
            ack_wait=ack_wait,
            max_deliver=max_deliveries,
        )
        self._lost = ConsumerSpec(
            stream=streams.DEAD_LETTERS, name=f"{name}-lost", subjects=(f"{streams.ADVISORY_PREFIX}.{name}",)
        )

    async def run(self) -> None:
        """Execute commands until cancelled."""
        await endless(either(self._consume(), self._handle_advisories()))

    async def _consume(self) -> None:
        slots = asyncio.Semaphore(self._concurrency)
        consumer = await self._bus.consume(self._spec, prefetch=1)
        try:
            async with asyncio.TaskGroup() as tasks:
                # Take a command only if a slot is free: if it waited here, the server would deliver it repeatedly and
                # never again after the last delivery.
                await slots.acquire()
                async for delivery in consumer:
                    task = tasks.create_task(self._handle(delivery), name="command")
                    task.add_done_callback(lambda _: slots.release())
                    await slots.acquire()
        finally:
            await consumer.close()

    async def _handle(self, delivery: Delivery) -> None:
        """Never raises: a failure of one command must not affect the others."""
        try:
            await self._carry_out(delivery)
        except BusUnavailableError as error:
            # Neither answered nor acknowledged: it is delivered again.
            log.info("command will be delivered again", subject=delivery.message.subject, error=str(error))
        except Exception:
            log.exception("command failed unexpectedly", subject=delivery.message.subject)

    async def _carry_out(self, delivery: Delivery) -> None:
        message = delivery.message
        verb = subjects.parse_command(message.subject).verb
        try:
            spec, handler = self._handlers[verb]
            # Permissions are based on subjects, so the namespace comes from the subject, whatever the sender wrote.
            place = cloudevents.source(self._cluster, subjects.parse_command(message.subject).namespace)
            command = msgspec.structs.replace(cloudevents.decode(message.payload), source=place)
            data = fit(command.data, spec.data)
            if not 0 < len(command.id) <= LONGEST_ID:
                raise ValueError(f"id must have 1 to {LONGEST_ID} characters, not {len(command.id)}")
        except (KeyError, ValueError) as error:
            reason = "UnknownCommand" if isinstance(error, KeyError) else "InvalidCommand"
            await self._dead_letter(message, reason, str(error), delivery.deliveries)
            await delivery.ack()
            return
        beat = asyncio.create_task(self._keep(delivery), name="command-in-progress")
        try:
            if await self._is_answered(delivery, verb, handler, command, data):
                await delivery.ack()
        except asyncio.CancelledError:
            # This receiver shuts down. Another one must not wait until the ack wait has passed.
            with suppress(BusError):
                await delivery.nak(self._delays[0])
            raise
        finally:
            await ended(beat)

    async def _is_answered(
        self, delivery: Delivery, verb: str, handler: Handler, command: cloudevents.Event, data: Any
    ) -> bool:
        """Let the handler execute a command, and answer it; False if it will be retried."""
        message, deliveries = delivery.message, delivery.deliveries
        try:
            with tracer.start_as_current_span(f"command {verb}", context=tracing.extract(message.headers)):
                answered = await handler(command, data)
        except CommandRefusedError as error:
            result = self._result(message, error.reason, str(error), deliveries)
            await self._answer("failed", message, command.id, result)
        except Exception as error:
            log.warning("command failed", subject=message.subject, deliveries=deliveries, error=str(error))
            if deliveries < self._max_deliveries:
                metrics.COMMANDS_HANDLED.labels(self._service, verb, "retried").inc()
                await delivery.nak(self._delays[min(deliveries, len(self._delays)) - 1])
                return False
            await self._dead_letter(message, "RetriesExhausted", str(error), deliveries)
        else:
            reason, text = answered if isinstance(answered, Answered) else ("", answered or "")
            await self._answer("completed", message, command.id, self._result(message, reason, text, deliveries))
        return True

    async def _keep(self, delivery: Delivery) -> None:
        """Report progress while a handler takes longer than the ack wait."""
        while True:
            await asyncio.sleep(self._ack_wait / 3)
            with suppress(BusUnavailableError):
                await delivery.in_progress()

    async def _dead_letter(self, message: Message, reason: str, text: str, deliveries: int) -> None:
        """Copy a command to the dead letters and report its failure. A repetition is a duplicate, by its message id."""
        # The sender's Nats-* headers are meant for another stream.
        headers = {name: value for name, value in message.headers.items() if not name.lower().startswith("nats-")}
        headers |= {"reason": reason, "error": text[:LONGEST_ANSWER], "deliveries": str(deliveries)}
        letter = subjects.dead_letter_subject(message.subject)
        identity = message.headers.get("ce-id", "")
        if not 0 < len(identity) <= LONGEST_ID:
            identity = cloudevents.event_id(message.subject, str(message.sequence))
        try:
            await self._send_letter(letter, message.payload, headers, identity)
        except MessageTooLargeError:
            # The message is already as large as the server accepts: the letter has only a part of it.
            log.warning("dead letter truncated", subject=letter, bytes=len(message.payload))
            short = {name: value[:LONGEST_ID] for name, value in headers.items()}
            await self._send_letter(letter, message.payload[:LONGEST_ANSWER], short, identity)
        await self._answer("failed", message, identity, self._result(message, reason, text, deliveries))

    async def _send_letter(self, subject: str, payload: bytes, headers: Mapping[str, str], identity: str) -> None:
        await _publish(self._bus, streams.DEAD_LETTERS, subject, payload, headers=headers, msg_id=f"dead-{identity}")

    def _result(self, message: Message, reason: str, text: str, deliveries: int) -> CommandResult:
        verb = subjects.parse_command(message.subject).verb
        return CommandResult(
            service=self._service, verb=verb, reason=reason, message=text[:LONGEST_ANSWER], deliveries=deliveries
        )

    async def _answer(self, event: str, message: Message, command_id: str, result: CommandResult) -> None:
        """Return when the answer is stored. A repetition is the same answer, by its id."""
        # A sender can invent any number of verbs, and each label value creates a time series.
        verb = result.verb if result.verb in self._handlers else "unknown"
        metrics.COMMANDS_HANDLED.labels(self._service, verb, event).inc()
        obj = {"metadata": {"name": command_id, "namespace": subjects.parse_command(message.subject).namespace}}
        self._publisher.publish(
            kind=COMMAND, obj=obj, event=event, data=result, reason=result.reason, causation_id=command_id
        )
        await self._publisher.flushed()

    async def _handle_advisories(self) -> None:
        """Handle commands whose receivers died at each delivery, as the server reports them."""
        consumer = await self._bus.consume(self._lost)
        try:
            async for delivery in consumer:
                try:
                    await self._handle_advisory(delivery)
                except BusUnavailableError as error:
                    log.info("advisory will be delivered again", error=str(error))
                except Exception:
                    # A failure of one command must not affect the others.
                    log.exception("dead letter not sent for a command whose receivers died")
        finally:
            await consumer.close()

    async def _handle_advisory(self, delivery: Delivery) -> None:
        try:
            advisory = msgspec.json.decode(delivery.message.payload, type=_Advisory)
        except msgspec.DecodeError as error:
            log.warning("unreadable advisory", error=str(error))
            await delivery.reject()
            return
        message = await self._bus.read(streams.COMMANDS, advisory.stream_seq)
        if message is not None:
            await self._dead_letter(message, "ReceiverDied", "its receiver died at each delivery", advisory.deliveries)
            await self._bus.remove(streams.COMMANDS, advisory.stream_seq)
        await delivery.ack()


async def _publish(bus: Bus, stream: StreamSpec, subject: str, payload: bytes, **options: Any) -> None:
    """Publish to a stream; declare the stream if it is missing."""
    try:
        await bus.publish(subject, payload, **options)
    except StreamNotFoundError:
        await bus.declare(stream)
        await bus.publish(subject, payload, **options)


class _Advisory(msgspec.Struct):
    stream_seq: int
    deliveries: int = 0
