"""HTTP answers of a tenant's pods to LoRA management, and a tenant's requests to the platform's servers."""

import asyncio
import json
import ssl
from contextlib import suppress

import aiohttp
from dynamo_shared.api import resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_MODELS
from yarl import URL

from tests.hostile import texts
from tests.hostile.attack import attack
from tests.hostile.objects import component, graph, obj
from tests.hostile.world import World
from tests.integration.platform import eventually

ROW = "answers of pods"
SERVERS = "our own servers"


async def _workers(world: World, replicas: int = 3) -> None:
    """Workers of a base model and an adapter for them, so that model-discovery calls them over HTTP."""
    await world.create(
        graph(world.namespace, "lora", component("Worker", "worker", replicas=replicas, modelRef={"name": "base"}))
    )
    await world.create(
        obj(
            DYNAMO_MODELS,
            world.namespace,
            "adapter",
            spec={"modelName": "adapter", "baseModelName": "base", "modelType": "lora", "source": {"uri": "s3://b/a"}},
        )
    )

    async def asked() -> bool:
        return bool(world.farm.heard)

    await eventually(asked, "workers are called", 30)


async def _said_nothing_secret(world: World) -> None:
    status = json.dumps(await world.status_of(DYNAMO_MODELS, "adapter"))
    assert "hunter2" not in status, f"the status repeats a secret of a worker's answer: {status[:300]}"


def _answer(mode: str, does: str) -> None:
    @attack(f"worker-{mode}", ROW, does, linger=3.0, check=_said_nothing_secret if mode == "secret-error" else None)
    async def run(world: World) -> None:
        world.farm.reset(mode)
        await _workers(world)


for _mode, _does in (
    ("hang", "workers that never answer"),
    ("close", "workers that close the connection"),
    ("drip", "workers that send ten bytes a second"),
    ("drip-head", "workers that send their head byte by byte"),
    ("stream", "workers that stream without end"),
    ("huge", "workers that answer 10 MB"),
    ("bomb", "workers whose compressed answer decompresses to 64 MiB"),
    ("deep", "workers that answer 400,000 brackets"),
    ("headers", "workers that answer 20,000 headers"),
    ("long-status", "workers with a status line of a megabyte"),
    ("secret-error", "workers whose error contains a password"),
    ("redirect", "workers that redirect to the metadata service"),
    ("self-redirect", "workers that redirect to themselves"),
    ("binary", "workers that answer bytes"),
    ("lone", "workers that answer lone surrogates"),
    ("numbers", "workers that answer numbers of 100,000 digits"),
    ("many", "workers that have 20,000 adapters"),
):
    _answer(_mode, _does)


#: The address of a pod: another one than the API server's, like on a real network.
_POD = ("127.0.0.2", 0)


async def _port(world: World) -> int:
    """Port of the webhooks; every user may read it in their configuration."""
    observed = await world.admin.get(resources.VALIDATING_WEBHOOK_CONFIGURATIONS, "", "dynamo-admission")
    assert observed is not None
    port = URL(observed["webhooks"][0]["clientConfig"]["url"]).port
    assert port is not None
    return port


def _trusting() -> ssl.SSLContext:
    tls = ssl.create_default_context()
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    return tls


@attack(
    "webhook-slowloris",
    SERVERS,
    "a pod with 240 connections to the webhooks that send a byte now and then, half of them of a large body",
    linger=2.0,
)
async def _slowloris(world: World) -> None:
    port = await _port(world)
    open_: list[asyncio.StreamWriter] = []
    tls = _trusting()
    for number, webhook in enumerate(("validate", "mutate", "convert") * 80):
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, local_addr=_POD)
            length = (1000, 1_000_000)[number % 2]
            writer.write(f"POST /{webhook} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{{".encode())
            open_.append(writer)
    world.memory["open"] = open_
    for _ in range(5):
        for writer in open_:
            with suppress(OSError):
                if not writer.is_closing():
                    writer.write(b" ")
        await asyncio.sleep(0.2)


@attack("webhook-handshakes", SERVERS, "300 connections to the webhooks that never begin TLS", linger=2.0)
async def _handshakes(world: World) -> None:
    port = await _port(world)
    world.memory["open"] = [await asyncio.open_connection("127.0.0.1", port) for _ in range(300)]


@attack(
    "webhook-connections", SERVERS, "a pod with 4,000 TLS connections to the webhooks that send nothing", linger=2.0
)
async def _connections(world: World) -> None:
    port, tls = await _port(world), _trusting()
    open_: list[asyncio.StreamWriter] = []
    world.memory["open"] = open_
    for _ in range(4000):
        with suppress(OSError):
            open_.append((await asyncio.open_connection("127.0.0.1", port, ssl=tls, local_addr=_POD))[1])


@attack("webhook-junk", SERVERS, "bodies that are not reviews, too deep, too long, of other kinds", linger=0.0)
async def _undecodable(world: World) -> None:
    port = await _port(world)
    bodies = [
        b"",
        b"{}",
        b"null",
        texts.nested(500_000).encode(),
        b'{"request": ' + b"9" * 1_000_000 + b"}",
        b"\xff" * 10_000,
        b'{"a": "' + b"x" * (9 << 20) + b'"}',
        json.dumps({"request": {"uid": "x" * 100_000, "object": None}}).encode(),
    ]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=_trusting())) as session:
        for path in ("convert", "validate", "mutate", "scale", "restore", "none"):
            for body in bodies:
                with suppress(aiohttp.ClientError, TimeoutError):
                    async with session.post(f"https://127.0.0.1:{port}/{path}", data=body) as answer:
                        world.answers[answer.status] += 1
                        assert answer.status != 500, f"POST /{path} of junk is an internal error: {await answer.text()}"


#: As many as a graph may have.
_COMPONENTS = 25


def _parts() -> list[KubeObject]:
    return [component(f"Worker{number}", replicas=0) for number in range(_COMPONENTS)]


def _review(padding: str) -> bytes:
    """A review of a graph, as the API server sends it."""
    kind = {"group": "nvidia.com", "version": "v1beta1", "kind": "DynamoGraphDeployment"}
    request = {
        "uid": "1",
        "kind": kind,
        "name": "flood",
        "namespace": "flood",
        "operation": "CREATE",
        "userInfo": {"username": "someone"},
        "object": graph("flood", "flood", *_parts(), annotations={"padding": padding}),
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


async def _flooding(port: int, pod: int, until: float) -> None:
    """Sends reviews as one pod, each when the former is answered: three small ones and a large one at a time."""
    loop = asyncio.get_running_loop()
    connector = aiohttp.TCPConnector(ssl=_trusting(), local_addr=(f"127.0.3.{pod}", 0))

    async def send(body: bytes) -> None:
        while loop.time() < until:
            with suppress(aiohttp.ClientError, TimeoutError):
                async with session.post(f"https://127.0.0.1:{port}/validate", data=body) as answer:
                    await answer.read()

    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=20)) as session:
        small, large = _review(""), _review("x" * 100_000)
        await asyncio.gather(*map(send, (small, small, small, large)))


async def _large_graphs_are_accepted(world: World) -> None:
    large = graph("quiet", "large", *_parts(), annotations={"padding": "x" * 20_000})
    answer = await world.admin.create(large)
    try:
        assert answer.ok, f"a large graph is refused: {answer}"
    finally:
        await world.admin.delete(resources.DYNAMO_GRAPH_DEPLOYMENTS, "quiet", "large")
        await world.memory["flood"]


@attack(
    "webhook-flood",
    SERVERS,
    "32 pods with reviews without a pause, and 32 that send large reviews slowly, for ten seconds",
    check=_large_graphs_are_accepted,
    must="a large graph is accepted meanwhile",
)
async def _flood(world: World) -> None:
    port, tls = await _port(world), _trusting()
    open_: list[asyncio.StreamWriter] = []
    world.memory["open"] = open_
    for pod in range(1, 33):
        with suppress(OSError):
            address = (f"127.0.4.{pod}", 0)
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, local_addr=address)
            writer.write(b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{")
            open_.append(writer)
    until = asyncio.get_running_loop().time() + 10.0
    world.memory["flood"] = asyncio.gather(*(_flooding(port, pod, until) for pod in range(1, 33)))


@attack(
    "webhook-scale-of-another-namespace",
    SERVERS,
    "a review about the scale of a graph in another namespace, without authentication",
    must="the answer says nothing about a graph that the sender may not read",
)
async def _scale(world: World) -> None:
    port = await _port(world)
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "kind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
            "resource": {"group": "nvidia.com", "version": "v1beta1", "resource": "dynamographdeployments"},
            "subResource": "scale",
            "name": "secret-graph",
            "namespace": "quiet",
            "operation": "UPDATE",
            "userInfo": {"username": "system:admin"},
            "object": {
                "apiVersion": "autoscaling/v1",
                "kind": "Scale",
                "metadata": {"name": "secret-graph", "namespace": "quiet"},
                "spec": {"replicas": 1},
            },
        },
    }
    await world.admin.create(graph("quiet", "secret-graph", component("HiddenPart", "frontend", scalingAdapter={})))
    try:
        await asyncio.sleep(0.5)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=_trusting())) as session:
            for path in ("scale", "validate", "mutate"):
                async with session.post(f"https://127.0.0.1:{port}/{path}", json=review) as answer:
                    assert answer.status == 200, f"POST /{path}: {answer.status}"
                    text = await answer.text()
                    assert "HiddenPart" not in text, f"POST /{path} reveals nothing about a graph: {text[:300]}"
    finally:
        await world.admin.delete(resources.DYNAMO_GRAPH_DEPLOYMENTS, "quiet", "secret-graph")


@attack("health-slowloris", SERVERS, "200 connections to a probe port that never finish their request", linger=2.0)
async def _health(world: World) -> None:
    port = world.stage.named("pod-builder")[0].health_port
    kept = []
    for _ in range(200):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\nX-A: ")
        kept.append((reader, writer))
    world.memory["open"] = kept
