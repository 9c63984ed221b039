"""On a real server, each NATS user of the platform can do its work and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import nats
import pytest
from dynamo_devcluster import NatsServer, NatsServerOptions, Programs
from dynamo_shared.aio import ended
from dynamo_shared.api.resources import PODS, ObjectKey
from dynamo_shared.bus import EventPublisher, NatsBus, server_config
from dynamo_shared.bus.commands import CommandConsumer, CommandSender
from dynamo_shared.bus.errors import BusDeniedError, StreamNotFoundError
from dynamo_shared.bus.permissions import CLI_USER, COMMAND_SENDER, EVENT_READER, PLATFORM, SERVICES, USERS, rights
from dynamo_shared.bus.protocol import CaughtUp, Message, Start
from dynamo_shared.bus.streams import ALL, STATE
from dynamo_shared.bus.streams import EVENTS as EVENT_STREAM
from dynamo_shared.state import ObjectCache, StateReader
from dynamo_shared.state.publisher import StatePublisher
from dynamo_shared.wire import cloudevents, subjects
from dynamo_shared.wire.discovered import MODELS, WORKERS
from dynamo_shared.wire.specifications import COMMANDS, EVENTS
from dynamo_shared.wire.specifications.base import ASKED
from structlog.testing import capture_logs

from tests.building.tasks import in_background

ROOT = Path(__file__).parents[3]
CLUSTER = "c.1"
TOKEN = "c%2E1"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[NatsServer]:
    passwords = {user: f"pw-{user}" for user in USERS}
    options = NatsServerOptions(authorization=server_config.authorization(CLUSTER, passwords))
    program = await Programs().obtain("nats-server")
    async with NatsServer(program, tmp_path_factory.mktemp("nats"), options) as running:
        async with connected(running, "watcher") as bus:
            await bus.declare(*ALL)
        yield running


@asynccontextmanager
async def connected(server: NatsServer, user: str) -> AsyncIterator[NatsBus]:
    bus = await NatsBus.connect(servers=(server.url,), name=user, user=user, password=f"pw-{user}")
    try:
        yield bus
    finally:
        await bus.close()


# Subjects to publish: name of the class -> (a subject of it, who may publish there).


def wire() -> Iterator[tuple[str, set[str]]]:
    for resource, owner in (("pods", "watcher"), (WORKERS.id, "model-discovery"), (MODELS.id, "model-discovery")):
        yield subjects.state_subject(CLUSTER, resource, ObjectKey("ns", "x")), {owner}
        yield subjects.synced_subject(CLUSTER, resource), {owner}
    askable = {command.service for command in COMMANDS}
    for event in EVENTS:
        owners = askable if event.publisher == ASKED else {event.publisher}
        yield subjects.event_subject(CLUSTER, "ns", event.kind, "x", event.event), owners
    for command in COMMANDS:
        asked = subjects.command_subject(CLUSTER, "ns", command.service, command.verb)
        yield asked, {*command.senders, CLI_USER, COMMAND_SENDER}
        yield subjects.dead_letter_subject(asked), {command.service}
    # Subjects of another cluster, and subjects that the specifications do not have.
    for subject in ("dynamo.state.v1.other.pods.ns.x", "dynamo.evt.v1.other.ns.platform.x.resync", "dynamo.x.y"):
        yield subject, set()
    yield f"dynamo.evt.v1.{TOKEN}.ns.platform.x.unknown", set()
    yield f"dynamo.cmd.v1.{TOKEN}.ns.watcher.stop", set()


READERS_OF_STATE = {*SERVICES, CLI_USER}
READERS_OF_EVENTS = {"scaler", "planner", "dynadmin", CLI_USER, EVENT_READER}
PUBLISHERS_OF_EVENTS = {"watcher", "pod-builder", "scaler", "model-discovery", "profiler", "planner", "image-builder"}
SENDERS = {"planner", CLI_USER}


def api() -> Iterator[tuple[str, set[str]]]:
    may: dict[str, set[str]] = {
        "STREAM.INFO.DYNAMO_STATE": READERS_OF_STATE,
        "STREAM.INFO.DYNAMO_EVENTS": READERS_OF_EVENTS | PUBLISHERS_OF_EVENTS,
        "STREAM.INFO.DYNAMO_COMMANDS": {"watcher", "scaler", *SENDERS},
        "STREAM.INFO.DYNAMO_DEAD_LETTERS": {"watcher", "scaler"},
        "STREAM.MSG.GET.DYNAMO_STATE": {"watcher", "model-discovery"},
        "STREAM.MSG.GET.DYNAMO_EVENTS": {"scaler"},
        "STREAM.MSG.GET.DYNAMO_COMMANDS": {"scaler"},
        "STREAM.MSG.DELETE.DYNAMO_COMMANDS": {"scaler"},
        "CONSUMER.CREATE.DYNAMO_STATE": READERS_OF_STATE,
        "CONSUMER.CREATE.DYNAMO_EVENTS": READERS_OF_EVENTS,
        "CONSUMER.CREATE.DYNAMO_EVENTS.mine.dynamo.evt.v1.>".replace(">", "x"): {EVENT_READER},
        "CONSUMER.DURABLE.CREATE.DYNAMO_EVENTS.mine": {EVENT_READER},
        "CONSUMER.INFO.DYNAMO_EVENTS.mine": {EVENT_READER},
        f"CONSUMER.CREATE.DYNAMO_COMMANDS.{TOKEN}-scaler": {"scaler"},
        f"CONSUMER.CREATE.DYNAMO_DEAD_LETTERS.{TOKEN}-scaler-lost": {"scaler"},
        "CONSUMER.MSG.NEXT.DYNAMO_STATE.x": READERS_OF_STATE,
        "CONSUMER.MSG.NEXT.DYNAMO_EVENTS.x": READERS_OF_EVENTS,
        f"CONSUMER.MSG.NEXT.DYNAMO_COMMANDS.{TOKEN}-scaler": {"scaler"},
        f"CONSUMER.MSG.NEXT.DYNAMO_DEAD_LETTERS.{TOKEN}-scaler-lost": {"scaler"},
    }
    may |= {f"STREAM.{verb}.{stream.name}": {"watcher"} for verb in ("CREATE", "UPDATE") for stream in ALL}
    general = ["INFO", "STREAM.NAMES", "STREAM.LIST", "ACCOUNT.PURGE.x", "META.LEADER.STEPDOWN", "STREAM.CREATE.OTHER"]
    for stream in (each.name for each in ALL):
        general += [
            *(f"STREAM.{verb}.{stream}" for verb in ("INFO", "CREATE", "UPDATE", "DELETE", "PURGE", "SNAPSHOT", "RESTORE")),
            *(f"STREAM.MSG.{verb}.{stream}" for verb in ("GET", "DELETE")),
            f"DIRECT.GET.{stream}",
            f"DIRECT.GET.{stream}.x",
            *(f"CONSUMER.{verb}.{stream}" for verb in ("CREATE", "NAMES", "LIST")),
            *(f"CONSUMER.{verb}.{stream}.x" for verb in ("CREATE", "DURABLE.CREATE", "INFO", "DELETE", "MSG.NEXT", "PAUSE")),
        ]  # fmt: skip
    for request in dict.fromkeys([*may, *general]):
        # The integrator's own consumers may have any name.
        named = request in (f"CONSUMER.{verb}.DYNAMO_EVENTS.x" for verb in ("CREATE", "DURABLE.CREATE", "INFO"))
        yield f"$JS.API.{request}", {EVENT_READER} if named else may.get(request, set())
    yield "$JS.ACK.DYNAMO_STATE.x.1.1.1.1.0", set()
    yield "$JS.ACK.DYNAMO_EVENTS.x.1.1.1.1.0", {EVENT_READER}
    yield f"$JS.ACK.DYNAMO_COMMANDS.{TOKEN}-scaler.1.1.1.1.0", {"scaler"}
    yield "$JS.ACK.DYNAMO_COMMANDS.other.1.1.1.1.0", set()
    yield "$JS.FC.DYNAMO_EVENTS.x.y", {EVENT_READER}
    yield "$JS.FC.DYNAMO_STATE.x.y", set()
    yield "$SYS.REQ.SERVER.PING", set()
    yield "_INBOX.anyone.x", set()
    for user in USERS:
        yield f"{subjects.inbox_prefix(user)}.x", set()


def subscriptions() -> Iterator[tuple[str, set[str]]]:
    for user in USERS:
        yield f"{subjects.inbox_prefix(user)}.x.*", {user}
    yield f"dynamo.evt.v1.{TOKEN}.>", {EVENT_READER, CLI_USER}
    yield f"dynamo.evt.v1.{TOKEN}.ns.command.*.completed", {EVENT_READER, CLI_USER, COMMAND_SENDER}
    for subject in (">", "dynamo.>", "dynamo.state.v1.>", "dynamo.cmd.v1.>", "dynamo.dlq.v1.>", "dynamo.evt.v1.>"):
        yield subject, set()
    for subject in ("$JS.>", "$JS.ACK.>", "$JS.API.>", "$SYS.>", "_INBOX.>", "_INBOX_watcher.>x".removesuffix("x")):
        yield subject, {"watcher"} if subject == "_INBOX_watcher.>" else set()


PUBLISHED = dict([*wire(), *api()])


@pytest.mark.parametrize("user", USERS)
async def test_each_user_publishes_and_subscribes_to_exactly_what_it_needs(server: NatsServer, user: str) -> None:
    refused: list[str] = []

    async def on_error(error: Exception) -> None:
        refused.append(str(error).lower())

    prefix = subjects.inbox_prefix(user).encode()
    client = await nats.connect(
        server.url, user=user, password=f"pw-{user}", error_cb=on_error, inbox_prefix=prefix, allow_reconnect=False
    )
    own = {PLATFORM: set(SERVICES)}.get(user, {user})
    for subject in PUBLISHED:
        await client.publish(subject, b"")
    for subject, _ in subscriptions():
        await client.subscribe(subject)
    # The library's flush sends its ping before buffered data: after the answer to the second one, all errors have
    # arrived.
    for _ in range(2):
        await client.flush()
    await client.close()
    published = {subject for subject in PUBLISHED if f'publish to "{subject}"'.lower() not in "\n".join(refused)}
    subscribed = {
        subject for subject, _ in subscriptions() if f'subscription to "{subject}"'.lower() not in "\n".join(refused)
    }
    assert published == {subject for subject, who in PUBLISHED.items() if who & own}
    assert subscribed == {subject for subject, who in subscriptions() if user in who}


async def test_a_connection_without_a_password_is_rejected(server: NatsServer) -> None:
    for login in ({}, {"user": "watcher", "password": "wrong"}, {"user": "watcher"}):
        with pytest.raises(nats.errors.Error):
            await nats.connect(server.url, allow_reconnect=False, max_reconnect_attempts=1, **login)


def pod(version: int) -> dict[str, object]:
    metadata = {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


async def test_the_watcher_publishes_state_and_every_service_reads_it(server: NatsServer) -> None:
    async with connected(server, "watcher") as bus:
        publisher = StatePublisher(bus, CLUSTER, declares=ALL)
        running = asyncio.create_task(publisher.run())
        await publisher.load([PODS])
        publisher.put(PODS, pod(1))
        await publisher.mark_synced(PODS, "1")
        await publisher._audit.check()
        await ended(running)
    for user in sorted(READERS_OF_STATE | {PLATFORM}):
        async with connected(server, user) as bus:
            cache = ObjectCache()
            reader = StateReader(bus, CLUSTER, [PODS], cache)
            async with in_background(reader.run()):
                await asyncio.wait_for(reader.synced(), 60)
                assert cache.count(PODS) == 1


@asynccontextmanager
async def scaler(server: NatsServer) -> AsyncIterator[None]:
    async def handle(command: cloudevents.Event, data: object) -> str:
        return "done"

    async with connected(server, "scaler") as bus:
        events = EventPublisher(bus, CLUSTER)
        consumer = CommandConsumer(bus, CLUSTER, "scaler", {"scale": handle}, events)
        async with in_background(events.run()), in_background(consumer.run()):
            yield


async def test_a_command_is_sent_carried_out_and_answered(server: NatsServer) -> None:
    async with scaler(server), connected(server, "planner") as sending:
        sender = CommandSender(sending, CLUSTER)
        data = {"graphDeployment": "g", "targets": []}
        completed, answer = await sender.ask("scaler", "scale", "ns", data, request="1", timeout=20)
        assert (completed, answer.message) == (True, "done")


async def test_an_integrator_reads_events(server: NatsServer) -> None:
    async with connected(server, "watcher") as bus:
        await bus.publish(subjects.event_subject(CLUSTER, "ns", "platform", "x", "resync"), b"{}")
    async with connected(server, EVENT_READER) as bus:
        subscription = await bus.subscribe(EVENT_STREAM, [f"dynamo.evt.v1.{TOKEN}.>"], start=Start.ALL)
        assert isinstance(await asyncio.wait_for(anext(subscription), 60), Message | CaughtUp)
        await subscription.close()


async def test_an_integrator_reads_a_long_history_in_order(server: NatsServer) -> None:
    """An ordered consumer answers the server's flow control: without that permission it stops after two megabytes."""
    refused: list[Exception] = []

    async def on_error(error: Exception) -> None:
        refused.append(error)

    event, count = b"x" * 16_000, 256
    async with connected(server, "watcher") as bus:
        for number in range(count):
            await bus.publish(subjects.event_subject(CLUSTER, "far", "platform", f"x{number}", "resync"), event)
    prefix = subjects.inbox_prefix(EVENT_READER).encode()
    login = {"user": EVENT_READER, "password": f"pw-{EVENT_READER}", "inbox_prefix": prefix}
    client = await nats.connect(server.url, error_cb=on_error, **login)
    try:
        subscription = await client.jetstream().subscribe(
            f"dynamo.evt.v1.{TOKEN}.far.>", stream=EVENT_STREAM.name, ordered_consumer=True
        )
        names = [(await subscription.next_msg(timeout=10)).subject.split(".")[-2] for _ in range(count)]
    finally:
        await client.close()
    assert names == [f"x{number}" for number in range(count)]
    assert not refused


@pytest.mark.parametrize(
    "subject", [subjects.state_subject(CLUSTER, "pods", ObjectKey("ns", "x")), "$JS.API.STREAM.CREATE.UNDECLARED"]
)
async def test_a_denied_publish_raises_at_once(server: NatsServer, subject: str) -> None:
    async with connected(server, "pod-builder") as bus:
        with capture_logs() as logged, pytest.raises(BusDeniedError, match="no permission to publish"):
            await bus.publish(subject, b"{}", timeout=60)
    assert [each["log_level"] for each in logged if "publish denied" in each["event"]] == ["warning"]


async def test_a_user_who_may_not_create_a_stream_waits_for_the_watcher(tmp_path: Path) -> None:
    options = NatsServerOptions(authorization=server_config.authorization(CLUSTER, {"scaler": "pw-scaler"}))
    program = await Programs().obtain("nats-server")
    async with NatsServer(program, tmp_path, options) as server, connected(server, "scaler") as bus:
        with capture_logs() as logged:
            for _ in range(2):
                with pytest.raises(StreamNotFoundError):
                    await bus.declare(STATE)
    # The failure only answers the declaration of the stream; it is not an error.
    assert {each["log_level"] for each in logged if "publish denied" in each["event"]} == {"debug"}


def test_unknown_users_are_rejected() -> None:
    with pytest.raises(ValueError, match="account is not a user"):
        rights("account", CLUSTER)
