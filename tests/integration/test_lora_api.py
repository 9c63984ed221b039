"""The client of workers' LoRA API on real connections, against every way in which a worker can misbehave."""

import asyncio

import pytest
from dynamo_devcluster import free_port
from dynamo_model_discovery.lora.adapter import Adapter
from dynamo_model_discovery.lora.api import Listing, WorkerApi
from dynamo_model_discovery.lora.responses import LoraError

from .lora_workers import Farm, farm

HERE = "direct"
ADAPTER = Adapter("org/support v1%", "s3://bucket/support")


@pytest.fixture
async def workers():
    async with farm() as started:
        yield started


@pytest.fixture
async def api():
    async with WorkerApi(timeout=60, concurrency=4) as client:
        yield client


@pytest.fixture
async def hasty():
    """A client with a short time-out, for answers that never arrive. Others may take longer on a busy machine."""
    async with WorkerApi(timeout=0.5, concurrency=4) as client:
        yield client


async def test_names_are_one_segment_of_the_path(workers: Farm, api: WorkerApi):
    await api.load(workers.url, None, ADAPTER)
    listing = await api.listing(workers.url)
    assert listing == Listing(frozenset({ADAPTER.name}), "/v1/loras")
    assert await api.unload(workers.url, listing.path, ADAPTER.name)
    assert workers[HERE].methods("DELETE") == ["/v1/loras/org%2Fsupport%20v1%25"]
    assert not workers[HERE].loras
    assert not await api.unload(workers.url, listing.path, ADAPTER.name)


async def test_a_worker_may_offer_only_the_short_path(workers: Farm, api: WorkerApi):
    workers[HERE].mode = "short"
    await api.load(workers.url, None, ADAPTER)
    listing = await api.listing(workers.url)
    assert listing == Listing(frozenset({ADAPTER.name}), "/loras")
    assert await api.unload(workers.url, None, ADAPTER.name)


async def test_a_worker_may_list_only_its_models(workers: Farm, api: WorkerApi):
    workers[HERE].mode = "models"
    await api.load(workers.url, None, ADAPTER)
    listing = await api.listing(workers.url)
    assert listing == Listing(frozenset({"base", ADAPTER.name}), None)


CARD = {"namespace": "ns", "component": "backend", "endpoint": "generate", "instance_id": 7}
SERVING = {"ns/backend/generate/7": CARD | {"card_json": {"display_name": "base"}}}
ENDPOINTS = {"ns/backend/generate/7": CARD | {"transport": {"tcp": "10.0.0.1:1/7/ns/backend/generate"}}}
PREFILL = {"ns/backend/generate/7": CARD | {"card_json": {"display_name": "base", "model_type": "Prefill"}}}
ADAPTERS = {"ns/backend/generate/7/org_support_v1": CARD | {"card_json": {"display_name": ADAPTER.name, "lora": {}}}}
UNREADABLE = {"ns/backend/generate/7/b": CARD | {"card_json": "half of a"}}


@pytest.mark.parametrize(
    ("metadata", "publishes"),
    [
        ({"endpoints": ENDPOINTS, "model_cards": {**SERVING, **ADAPTERS}}, True),
        ({"endpoints": ENDPOINTS, "model_cards": SERVING}, False),
        ({"endpoints": ENDPOINTS, "model_cards": {**SERVING, **UNREADABLE}}, True),
        # Releases differ in whether prefill workers publish adapters, and in their answer if etcd has the cards.
        ({"endpoints": {}, "model_cards": PREFILL}, True),
        ({"endpoints": {}, "model_cards": {}}, True),
        ({"model_cards": "many"}, True),
        (["no", "object"], True),
        (None, True),
    ],
)
async def test_the_metadata_of_a_worker_says_which_cards_it_publishes(
    workers: Farm, api: WorkerApi, metadata: object, publishes: bool
):
    workers[HERE].metadata = metadata
    assert await api.publishes(workers.url, ADAPTER.name) is publishes


async def test_an_adapter_counts_as_published_if_a_card_cannot_be_read(workers: Farm, api: WorkerApi):
    name = "a" * 300
    card = CARD | {"card_json": {"display_name": name, "lora": {}}}
    workers[HERE].metadata = {"endpoints": ENDPOINTS, "model_cards": {**SERVING, "ns/backend/generate/7/aaa": card}}
    assert await api.publishes(workers.url, name)


async def test_published_cards_are_unknown_if_a_worker_does_not_answer(workers: Farm, api: WorkerApi, hasty: WorkerApi):
    for workers[HERE].mode in ("hang", "500", "half", "huge"):
        asked = hasty if workers[HERE].mode == "hang" else api
        assert await asked.publishes(workers.url, ADAPTER.name) is None


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("hang", r"GET /v1/loras: no answer within 0.5 s"),
        ("500", r"GET /v1/loras: HTTP 500: out of GPU memory"),
        ("half", r"GET /v1/loras: the answer is incomplete"),
        ("huge", r"GET /v1/loras: the answer is longer than 1048576 bytes"),
        ("redirect", r"GET /v1/loras: HTTP 302, redirects are not followed"),
        ("absent", r"DYN_LORA_ENABLED=true"),
    ],
)
async def test_errors_describe_the_misbehaviour_of_a_worker(
    workers: Farm, api: WorkerApi, hasty: WorkerApi, mode: str, said: str
):
    workers[HERE].mode = mode
    with pytest.raises(LoraError, match=said) as caught:
        await (hasty if mode == "hang" else api).listing(workers.url)
    assert caught.value.unanswered == (mode in {"hang", "half"})
    workers[HERE].mode = "ok"
    assert (await api.listing(workers.url)).names == set()


async def test_a_refusal_is_quoted_without_secrets(workers: Farm, api: WorkerApi):
    workers[HERE].mode = "refuse"
    with pytest.raises(LoraError, match=r"HTTP 500: LoRA not found at s3://bucket/support\?\.\.\.$"):
        await api.load(workers.url, None, ADAPTER)


async def test_an_unreachable_worker_is_an_error(api: WorkerApi):
    with pytest.raises(LoraError, match="cannot be reached") as caught:
        await api.listing(f"http://127.0.0.1:{free_port()}")
    assert not caught.value.unanswered


async def test_the_time_out_ends_an_answer_that_trickles(hasty: WorkerApi):
    cut_off = asyncio.Event()

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        try:
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.05)
        except (ConnectionError, RuntimeError):
            # The event loop refuses to write to a closed connection.
            cut_off.set()
        finally:
            writer.close()

    server = await asyncio.start_server(trickle, "127.0.0.1", 0)
    async with server:
        with pytest.raises(LoraError, match="no answer within"):
            await hasty.listing(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        # The answer was still in progress, and would not have ended.
        await asyncio.wait_for(cut_off.wait(), 60)


async def test_proxies_of_the_environment_are_not_used(workers: Farm, api: WorkerApi, monkeypatch: pytest.MonkeyPatch):
    async with farm() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        await api.listing(workers.url)
        assert not proxy.workers


async def test_a_proxy_in_the_settings_is_used(workers: Farm):
    async with WorkerApi(timeout=60, concurrency=4, proxy=workers.url) as api:
        await api.load("http://10.1.2.3:9090", None, ADAPTER)
        await api.load("http://[fd00::7]:9090", None, ADAPTER)
        assert await api.unload("http://10.1.2.3:9090", None, ADAPTER.name)
    assert workers["fd00::7"].loras == {ADAPTER.name: ADAPTER.uri}
    assert workers["10.1.2.3"].methods("DELETE") == ["/v1/loras/org%2Fsupport%20v1%25"]


async def test_compressed_bodies_are_not_decompressed(api: WorkerApi):
    import gzip

    packed = gzip.compress(b'{"loras": {}}' + b" " * (50 << 20))

    async def bomb(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(packed)}\r\n\r\n"
        writer.write(head.encode() + packed)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(bomb, "127.0.0.1", 0)
    async with server:
        with pytest.raises(LoraError, match="the answer is not a list of adapters"):
            await api.listing(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
