"""NATS: who may connect, what each credential allows, and the damage with a stolen credential of the watcher."""

import asyncio
import copy
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
import nats
from dynamo_shared.api import resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.bus import NatsBus
from dynamo_shared.bus.commands import CommandSender, consumer_name
from dynamo_shared.leases.channel import EtcdOptions
from dynamo_shared.leases.client import EtcdClient
from dynamo_shared.leases.errors import EtcdError
from dynamo_shared.state import messages
from dynamo_shared.wire import subjects
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.errors import APIError

from tests.hostile import texts
from tests.hostile.attack import attack
from tests.hostile.objects import component, config_map, graph, lease
from tests.hostile.world import QUIET, World
from tests.integration.platform import eventually
from tests.stage.cluster import CLUSTER

STATE = "a message on STATE"
ACCESS = "who reaches NATS"
#: Limit for the repair of what a stolen watcher credential forged, with the settings of these tests. Seconds.
UNDONE_WITHIN = 60.0
VICTIM = "victim"


@asynccontextmanager
async def connected(world: World, user: str = "") -> AsyncIterator[Client]:
    """A connection as a user of the stage's credentials; anonymous if there is no such credential."""
    client = await nats.connect(
        world.stage.nats.url,
        allow_reconnect=False,
        connect_timeout=3,
        max_reconnect_attempts=0,
        error_cb=_silent,
        **world.stage.credentials.get(user, {}),
    )
    try:
        yield client
    finally:
        with suppress(Exception):
            await client.close()


async def _silent(_: Exception) -> None:
    """Ignores errors: refusals are under test, and the library would log them."""


async def _refused(what: str, act: Callable[[], Awaitable[Any]]) -> None:
    """AssertionError if NATS accepts the request."""
    try:
        async with asyncio.timeout(5):
            answer = await act()
    except (NatsError, APIError, EtcdError, OSError, TimeoutError):
        return
    raise AssertionError(f"NATS allowed {what}: {str(answer)[:200]}")


@attack("nats-anonymous", ACCESS, "a connection without any credential", must="it is refused", linger=0.0)
async def _anonymous(world: World) -> None:
    async def connect() -> str:
        async with connected(world) as client:
            await client.flush(2)
            return "connected"

    await _refused("a connection without a credential", connect)


@attack(
    "nats-monitoring-secrets",
    ACCESS,
    "NATS' monitoring, asked for users and connections",
    linger=0.0,
    must="it contains no password or token",
)
async def _monitoring(world: World) -> None:
    async with aiohttp.ClientSession() as session:
        for path in ("varz", "connz?auth=1&subs=1", "accountz", "jsz?config=1&streams=1", "subsz?subs=1"):
            async with session.get(f"http://127.0.0.1:{world.stage.nats.monitoring_port}/{path}") as answer:
                text = await answer.text()
                for each in world.stage.credentials.values():
                    assert each["password"] not in text, f"a password stands in /{path}"


def _state(resource_id: str, namespace: str, name: str) -> str:
    return subjects.state_subject(CLUSTER, resource_id, ObjectKey(namespace, name))


def _forbidden(name: str, does: str, user: str, act: Callable[[Client], Awaitable[Any]]) -> None:
    @attack(f"nats-{name}", ACCESS, does, must="it is refused", linger=0.5)
    async def run(world: World) -> None:
        async def attempt() -> Any:
            async with connected(world, user) as client:
                return await act(client)

        await _refused(does, attempt)


async def _hears(client: Client, subject: str) -> Any:
    subscription = await client.subscribe(subject)
    await client.flush(2)
    await client.publish("hostile.probe", b"x")
    return await subscription.next_msg(timeout=2)


@attack(
    "etcd-anonymous",
    ACCESS,
    "the platform's etcd, read and written without a password",
    must="it is refused",
    linger=0.0,
)
async def _etcd(world: World) -> None:
    async def read() -> Any:
        async with EtcdClient(EtcdOptions(endpoints=(world.stage.etcd.url,))) as client:
            await client.put("/dynamo-platform/hostile", b"x")
            return "written"

    await _refused("etcd without a password", read)


_VICTIM = _state(DYNAMO_GRAPH_DEPLOYMENTS.id, QUIET, VICTIM)
_EVENT = f"dynamo.evt.v1.{CLUSTER}.quiet.dynamographdeployment.x.ready"
_COMMAND = f"dynamo.cmd.v1.{CLUSTER}.quiet.scaler.scale"


def _publishes(subject: str) -> Callable[[Client], Awaitable[Any]]:
    return lambda client: client.jetstream(timeout=3).publish(subject, b"{}")


def _manages(act: str, *arguments: Any, **options: Any) -> Callable[[Client], Awaitable[Any]]:
    return lambda client: getattr(client.jsm(timeout=3), act)(*arguments, **options)


for _name, _does, _act in (
    ("state", "publishes STATE", _publishes(_VICTIM)),
    ("event", "publishes an event", _publishes(_EVENT)),
    ("command", "sends a scale command", _publishes(_COMMAND)),
    ("reads-state", "reads STATE", _manages("get_last_msg", "DYNAMO_STATE", "dynamo.state.v1.>")),
    ("purge", "empties EVENTS", _manages("purge_stream", "DYNAMO_EVENTS")),
    ("delete-stream", "deletes STATE", _manages("delete_stream", "DYNAMO_STATE")),
    (
        "stream",
        "creates a stream that receives commands",
        _manages("add_stream", name="MINE", subjects=["dynamo.cmd.v1.>"]),
    ),
    ("subscribe", "subscribes to everything", lambda client: _hears(client, ">")),
):
    _forbidden(f"integrator-{_name}", f"an integrator {_does}", "integrator", _act)
for _user in ("pod-builder", "scaler", "model-discovery", "profiler", "planner"):
    for _name, _does, _act in (
        ("state", "publishes another's STATE", _publishes(_VICTIM)),
        ("purge", "empties STATE", _manages("purge_stream", "DYNAMO_STATE")),
        ("delete", "deletes EVENTS", _manages("delete_stream", "DYNAMO_EVENTS")),
    ):
        _forbidden(f"{_user}-{_name}", f"{_user}'s credential {_does}", _user, _act)


# The following attacks use the watcher's own credential, as if it was stolen.


async def _victim(world: World) -> KubeObject:
    """A working graph in the quiet namespace."""
    await world.admin.create(graph(QUIET, VICTIM, component("Frontend", "frontend")))

    async def works() -> KubeObject | None:
        observed = await world.admin.get(DYNAMO_GRAPH_DEPLOYMENTS, QUIET, VICTIM)
        return observed if observed and (observed.get("status") or {}).get("state") == "successful" else None

    observed: KubeObject = await eventually(works, "the victim is successful")
    return observed


async def _obeys(world: World) -> None:
    """A change of the victim reaches its Deployment, and the forgery is repaired."""
    components = [component("Frontend", "frontend", replicas=2)]
    answer = await world.admin.patch(DYNAMO_GRAPH_DEPLOYMENTS, QUIET, VICTIM, {"spec": {"components": components}})
    assert answer.ok, str(answer)
    try:

        async def follows() -> bool:
            observed = await world.admin.get(DEPLOYMENTS, QUIET, f"{VICTIM}-frontend")
            return observed is not None and observed["spec"]["replicas"] == 2

        await eventually(follows, "a change after the forgery reaches the Deployment", UNDONE_WITHIN)
    finally:
        await world.admin.delete(DYNAMO_GRAPH_DEPLOYMENTS, QUIET, VICTIM)


Forgery = Callable[[KubeObject], list[tuple[str, dict[str, str], bytes]]]


def _forged(name: str, does: str, forgery: Forgery, **more: Any) -> None:
    @attack(
        f"state-{name}",
        STATE,
        does,
        check=_obeys,
        must="it is repaired, and later changes are reconciled",
        linger=0.5,
        **more,
    )
    async def run(world: World) -> None:
        result = await _victim(world)
        async with connected(world, "watcher") as client:
            stream = client.jetstream(timeout=3)
            for subject, headers, payload in forgery(result):
                with suppress(NatsError, APIError, TimeoutError):
                    await stream.publish(subject, payload, headers=headers)


def _headers(obj: KubeObject, **changed: str) -> dict[str, str]:
    return {**messages.object_headers(obj, messages.ChangeType.MODIFIED), **changed}


def _changed(obj: KubeObject, **metadata: Any) -> KubeObject:
    return {**obj, "metadata": {**obj["metadata"], **metadata}}


def _with_replicas(obj: KubeObject, replicas: int) -> KubeObject:
    return {**obj, "spec": {**obj["spec"], "components": [component("Frontend", "frontend", replicas=replicas)]}}


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


HUGE = str(2**60)


def _future(obj: KubeObject) -> list[tuple[str, dict[str, str], bytes]]:
    newer = _changed(_with_replicas(obj, 7), resourceVersion=HUGE)
    return [(_VICTIM, _headers(newer), _json(newer))]


_forged("version-2-60", "the victim with resourceVersion 2^60 and another spec", _future)
_forged(
    "tombstone-2-60",
    "a tombstone of the victim with resourceVersion 2^60",
    lambda observed: [(_VICTIM, _headers(observed, resourceVersion=HUGE, change="deleted"), b"")],
)
_forged(
    "another-uid",
    "the victim under another uid, created in the future",
    lambda observed: [
        (
            _VICTIM,
            _headers(observed, uid="f" * 32, created="9999-12-31T23:59:59Z", resourceVersion="1"),
            _json(_changed(observed, uid="f" * 32, creationTimestamp="9999-12-31T23:59:59Z")),
        )
    ],
)
_forged(
    "payload-of-another",
    "a payload of another namespace's object under the victim's subject",
    lambda observed: [
        (
            _VICTIM,
            _headers(observed, resourceVersion=str(int(observed["metadata"]["resourceVersion"]) + 1)),
            _json(_changed(observed, namespace="tenant", name="other")),
        )
    ],
)
_HEADLESS: tuple[KubeObject, ...] = ({"metadata": "x"}, {"metadata": []}, {}, {"metadata": {"name": 1}})


def _headless(obj: KubeObject) -> list[tuple[str, dict[str, str], bytes]]:
    return [(_VICTIM, _headers(obj, resourceVersion=HUGE), _json(each)) for each in _HEADLESS]


_forged("metadata-is-text", "objects whose metadata is a text, a list, nothing", _headless)
_forged(
    "not-json",
    "payloads that are not JSON",
    lambda observed: [
        (_VICTIM, _headers(observed, resourceVersion=HUGE), each)
        for each in (b"", b"\xff\xfe", b"null", b"[]", texts.nested(200_000).encode(), b'"x"')
    ],
)
_forged(
    "created-without-zone",
    "`created` without a zone, in the year 0, and as text",
    lambda observed: [
        (
            _VICTIM,
            _headers(observed, uid=f"u{number}", created=each),
            _json(_changed(observed, uid=f"u{number}", creationTimestamp=each)),
        )
        for number, each in enumerate(date for date in texts.DATES if len(date) < 100)
    ],
)


def _marker(resource_id: str, version: str, count: int, time: str, **more: Any) -> bytes:
    return _json({"resource": resource_id, "resourceVersion": version, "count": count, "time": time, **more})


_forged(
    "marker",
    "markers that claim a resource is not served or has 2^60 objects, and invalid markers",
    lambda observed: [
        (
            subjects.synced_subject(CLUSTER, DYNAMO_GRAPH_DEPLOYMENTS.id),
            {"change": "synced", "resourceVersion": HUGE},
            each,
        )
        for each in (
            b"",
            b"{}",
            _marker(DYNAMO_GRAPH_DEPLOYMENTS.id, HUGE, 0, "x", served=False),
            _marker("pods", "x", 2**60, "9999-12-31T23:59:59Z"),
        )
    ],
)
_forged(
    "odd-subjects",
    "subjects that no object has",
    lambda observed: [
        (
            f"dynamo.state.v1.{CLUSTER}.{DYNAMO_GRAPH_DEPLOYMENTS.id.replace('.', '%2E')}.{rest}",
            _headers(observed),
            _json(observed),
        )
        for rest in ("_", "quiet", "quiet.victim.more", "%00.x", "_.victim", "quiet.%ZZ", "quiet." + "x" * 2000)
    ],
)
_forged(
    "foreign-objects",
    "500 missing graphs of the quiet namespace",
    lambda observed: [
        (
            _state(DYNAMO_GRAPH_DEPLOYMENTS.id, QUIET, f"ghost-{n}"),
            _headers(observed, uid=f"ghost-{n}"),
            _json(_changed(observed, name=f"ghost-{n}", uid=f"ghost-{n}")),
        )
        for n in range(500)
    ],
    slack=4.0,
)
_forged(
    "lease",
    "a Lease by which another platform claims to manage the quiet namespace",
    lambda observed: [
        (
            _state(resources.LEASES.id, QUIET, "dynamo-operator-namespace-scope"),
            {"uid": "l", "resourceVersion": HUGE, "created": "2026-01-01T00:00:00Z", "change": "added"},
            _json(
                _changed(
                    lease(QUIET, renewTime="9999-12-31T23:59:59.000000Z"),
                    uid="l",
                    resourceVersion=HUGE,
                    creationTimestamp="2026-01-01T00:00:00Z",
                )
            ),
        )
    ],
    slack=UNDONE_WITHIN,
)


def _fuzz(observed: KubeObject) -> list[tuple[str, dict[str, str], bytes]]:
    """Random headers and payloads, the same in every run."""
    dice = random.Random(12)
    values = [
        "",
        "x",
        "-1",
        "0",
        HUGE,
        "9" * 400,
        "1e9",
        " 1",
        "１",
        "\x7f",
        "null",
        "2026-01-01T00:00:00Z",
        "deleted",
        "synced",
        "added",
    ]
    kinds: list[Any] = [None, True, -1, 1e308, "x", [], {}, ["a"] * 100, {"a": {"b": []}}, "9999-12-31T23:59:59Z"]
    made = []
    for _ in range(300):
        headers = {
            name: dice.choice(values)
            for name in dice.sample(
                ["uid", "resourceVersion", "created", "change", "generation", "traceparent", "x"], dice.randint(0, 7)
            )
        }
        obj = json.loads(json.dumps(observed))
        for _ in range(dice.randint(1, 4)):
            place = obj
            for step in dice.choice(
                (("metadata",), ("spec",), ("status",), ("metadata", "labels"), ("spec", "components"), ())
            ):
                place = place[step] if isinstance(place, dict) and isinstance(place.get(step), dict) else place
            if isinstance(place, dict) and place:
                place[dice.choice(list(place))] = copy.deepcopy(dice.choice(kinds))
        made.append((_VICTIM, headers, _json(obj)))
    return made


_forged("fuzz", "300 messages whose headers and payloads are random", _fuzz)


@attack(
    "state-huge-messages",
    STATE,
    "messages of 900 KB for subjects of missing objects",
    check=None,
    linger=1.0,
    memory=96.0,
)
async def _huge(world: World) -> None:
    async with connected(world, "watcher") as client:
        stream = client.jetstream(timeout=5)
        for number in range(20):
            subject = _state(resources.CONFIG_MAPS.id, world.namespace, f"huge-{number}")
            metadata = {"uid": "h", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
            obj = config_map(world.namespace, f"huge-{number}", {"x": "v" * 900_000}, metadata=metadata)
            with suppress(NatsError, APIError, TimeoutError):
                await stream.publish(
                    subject,
                    _json(obj),
                    headers={"uid": "h", "resourceVersion": "1", "created": "2026-01-01T00:00:00Z", "change": "added"},
                )


@attack(
    "state-purged",
    STATE,
    "STATE emptied, and deleted, with the watcher's credential",
    check=_obeys,
    linger=0.5,
    must="it is filled again",
    slack=10.0,
)
async def _purged(world: World) -> None:
    await _victim(world)
    async with connected(world, "watcher") as client:
        manager = client.jsm(timeout=3)
        with suppress(NatsError, APIError, TimeoutError):
            await manager.purge_stream("DYNAMO_STATE")
        with suppress(NatsError, APIError, TimeoutError):
            await manager.delete_stream("DYNAMO_STATE")


async def _answers(world: World) -> None:
    """Later changes are served, and a scale command is answered, even if only by a refusal."""
    await _obeys(world)
    login = world.stage.credentials["planner"]
    bus = await NatsBus.connect(
        servers=(world.stage.nats.url,), name="planner", user=login["user"], password=login["password"]
    )
    try:
        data = {"graphDeployment": "none", "targets": [{"component": "Frontend", "replicas": 1}]}
        sender = CommandSender(bus, CLUSTER)
        completed, answer = await sender.ask("scaler", "scale", QUIET, data, request="hostile", timeout=UNDONE_WITHIN)
        assert not completed, str(answer)
    finally:
        await bus.close()


@attack(
    "nats-integrator-replies",
    STATE,
    "an integrator has the server send its answers to NATS' API: streams emptied and deleted, consumers deleted",
    check=_answers,
    linger=0.5,
    must="streams and consumers are recreated, and STATE is filled",
    slack=10.0,
)
async def _replies(world: World) -> None:
    """The server sends answers to any subject (nats-server #8274): an answer without content is a request."""
    await _victim(world)
    consumer = {"durable_name": "hostile", "ack_policy": "none", "deliver_policy": "new"}
    acts = [f"STREAM.{verb}.DYNAMO_{name}" for verb in ("PURGE", "DELETE") for name in ("STATE", "COMMANDS", "EVENTS")]
    scaler = consumer_name(CLUSTER, "scaler")
    async with connected(world, "integrator") as client:
        for act in (f"CONSUMER.DELETE.DYNAMO_COMMANDS.{scaler}", *acts):
            # An unsuccessful pull request is answered without content. Consumers disappear with their stream.
            made = _json({"stream_name": "DYNAMO_EVENTS", "config": consumer})
            await client.publish("$JS.API.CONSUMER.DURABLE.CREATE.DYNAMO_EVENTS.hostile", made)
            pull = "$JS.API.CONSUMER.MSG.NEXT.DYNAMO_EVENTS.hostile"
            await client.publish(pull, b'{"batch": 1, "no_wait": true}', reply=f"$JS.API.{act}")
            await client.flush(2)
            await asyncio.sleep(0.3)


@attack(
    "consumers-deleted",
    STATE,
    "all consumers of all streams deleted with the watcher's credential",
    check=_obeys,
    linger=0.5,
    slack=10.0,
)
async def _consumers(world: World) -> None:
    await _victim(world)
    async with connected(world, "watcher") as client:
        manager = client.jsm(timeout=3)
        for stream in ("DYNAMO_STATE", "DYNAMO_EVENTS", "DYNAMO_COMMANDS"):
            with suppress(NatsError, APIError, TimeoutError):
                for consumer in await manager.consumers_info(stream):
                    await manager.delete_consumer(stream, consumer.name)


@attack(
    "commands-odd",
    "scale commands",
    "scale commands that are not CloudEvents, too deep, about other namespaces",
    linger=1.0,
)
async def _commands(world: World) -> None:
    await world.create(graph(world.namespace, "scaled"))
    dice = random.Random(13)
    async with connected(world, "planner") as client:
        stream = client.jetstream(timeout=3)
        bodies: list[Any] = [b"", b"\xff", b"null", b"[]", texts.nested(100_000).encode(), b"9" * 100_000]
        bodies += [
            _json(
                {
                    "specversion": dice.choice(("1.0", 1, None, "x" * 10_000)),
                    "id": dice.choice(("a", "", "i" * 300_000, 1)),
                    "type": dice.choice(("com.nvidia.dynamo.command.scale", "x", 1)),
                    "source": dice.choice(("/x", f"/clusters/{CLUSTER}/namespaces/quiet", "", None)),
                    "time": dice.choice(texts.DATES),
                    "data": dice.choice(
                        (
                            {
                                "graphDeployment": "scaled",
                                "targets": [{"component": "Frontend", "replicas": dice.choice((10**30, -1, 2**31, 1))}],
                            },
                            {},
                            [],
                            None,
                            "x",
                            {"targets": [{}] * 5000},
                        )
                    ),
                }
            )
            for _ in range(60)
        ]
        for body in bodies:
            with suppress(NatsError, APIError, TimeoutError):
                await stream.publish(f"dynamo.cmd.v1.{CLUSTER}.{world.namespace}.scaler.scale", body)
