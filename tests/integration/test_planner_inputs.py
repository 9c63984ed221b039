"""Inputs of SLA planning from real sources: Prometheus, NATS, and the Dynamo runtime."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nats
import pytest
from aiohttp import web
from dynamo_devcluster.ports import LOOPBACK
from dynamo_devcluster.probe import LocalHttp
from dynamo_devcluster.servers import EtcdServer, NatsServer
from dynamo_planner.core.observation import ForwardPass, Missing, Pool, Traffic
from dynamo_planner.inputs import InputUnavailable
from dynamo_planner.inputs.forward_passes import ForwardPasses, subject
from dynamo_planner.inputs.prometheus.client import PrometheusClient
from dynamo_planner.inputs.prometheus.options import PrometheusOptions
from dynamo_planner.inputs.prometheus.traffic import TrafficReader
from dynamo_planner.inputs.runtime_feed import RuntimeFeed, runtime_nats_options, watch_engines
from dynamo_shared.api.contracts.planner import MetricsSource, Mode
from dynamo_shared.bus.nats import NatsListener
from dynamo_shared.bus.protocol import BusHealth
from dynamo_shared.runtime.settings.planner import RuntimeNats
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from tests.building.prometheus import PrometheusServer, ScrapeJob
from tests.dynamo_runtime.environment import RuntimeEnvironment
from tests.dynamo_runtime.models import tiny_model
from tests.dynamo_runtime.processes import Runtime, etcd_planes
from tests.unit.planner.inputs.test_engine_messages import message

from .platform import eventually

pytestmark = pytest.mark.timeout(600)
NAMESPACE = "team-a-graph"
WINDOW = 8.0
EVERY = 0.05
#: Requests a second of the exporter below.
RATE = 1 / EVERY
Read = Callable[[], Awaitable[Traffic | InputUnavailable]]


class Exporter:
    """A frontend's metrics without a frontend: a steady rate of requests with 1000 tokens in and 150 out.

    Requests are counted at scrape time, so that a busy machine does not turn them into waves.
    """

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self._started = Counter("dynamo_frontend_requests_started", "-", ["model"], registry=registry)
        self._histograms = {
            name: Histogram(f"dynamo_frontend_{name}", "-", ["model"], registry=registry)
            for name in (
                "input_sequence_tokens",
                "output_sequence_tokens",
                "time_to_first_token_seconds",
                "inter_token_latency_seconds",
            )
        }
        self._due = time.monotonic()
        self._busy = True
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def serve(self) -> None:
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, LOOPBACK, self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def die(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def turn(self, *, busy: bool) -> None:
        """Turn requests on or off."""
        self._count()
        self._busy = busy

    def _count(self) -> None:
        while self._due <= time.monotonic():
            self._due += EVERY
            if self._busy:
                self._one()

    def _one(self) -> None:
        self._started.labels("Tiny").inc()
        for name, value in zip(self._histograms, (1000, 150, 0.25, 0.0625), strict=True):
            self._histograms[name].labels("Tiny").observe(value)

    async def _metrics(self, request: web.Request) -> web.Response:
        self._count()
        return web.Response(body=generate_latest(self.registry))


@pytest.fixture
async def exporter() -> AsyncIterator[Exporter]:
    made = Exporter()
    await made.serve()
    yield made
    await made.die()


@asynccontextmanager
async def opened(
    server: PrometheusServer, namespace: str = NAMESPACE, model: str = "tiny"
) -> AsyncIterator[TrafficReader]:
    async with PrometheusClient.open(PrometheusOptions(url=server.url, timeout=5)) as client:
        yield TrafficReader(
            client,
            source=MetricsSource.FRONTEND,
            namespace=namespace,
            kubernetes_namespace="team",
            model=model,
            stale_after=5.0,
            least_window=1.0,
            past_step=4.0,
        )


@asynccontextmanager
async def reading(server: PrometheusServer, namespace: str = NAMESPACE, model: str = "tiny") -> AsyncIterator[Read]:
    async with opened(server, namespace, model) as reader:

        async def read() -> Traffic | InputUnavailable:
            return await reader.read(WINDOW)

        yield read


def prometheus(program: Path, folder: Path, exporter: Exporter, **labels: str) -> PrometheusServer:
    job = ScrapeJob("frontend", [f"{LOOPBACK}:{exporter.port}"], labels)
    return PrometheusServer(program, folder / "prometheus", [job], interval=0.5)


async def until(read: Read, right: Callable[[Any], bool], what: str, within: float = 60.0) -> list[Any]:
    """All readings up to the first correct one; none of them may report an outage as falling demand."""
    observed: list[Any] = []

    async def check() -> bool:
        observed.append(await read())
        return right(observed[-1])

    await eventually(check, what, within)
    return observed


def is_traffic(reported: object) -> bool:
    return isinstance(reported, Traffic)


def is_missing(*why: Missing) -> Callable[[object], bool]:
    return lambda reported: isinstance(reported, InputUnavailable) and reported.why in why


def is_true(reported: object) -> bool:
    """Whether a reading is unknown or correct."""
    return not isinstance(reported, Traffic) or reported.requests == pytest.approx(RATE * WINDOW, rel=0.25)


async def test_traffic_is_correct_or_missing_while_prometheus_starts_stops_and_loses_data(
    prometheus_program: Path, exporter: Exporter, tmp_path: Path
):
    server = prometheus(prometheus_program, tmp_path, exporter, dynamo_namespace=NAMESPACE)
    async with reading(server) as read:
        assert is_missing(Missing.UNREACHABLE)(await read())
        await exporter.die()
        async with server:
            await until(read, is_missing(Missing.NO_SERIES), "no frontend was scraped")
            await exporter.serve()
            await until(read, is_traffic, "traffic is read")
            whole = await until(read, lambda reported: is_traffic(reported) and is_true(reported), "all of it")
            assert whole[-1].isl == pytest.approx(1000)
            assert whole[-1].osl == pytest.approx(150)
            assert whole[-1].ttft == pytest.approx(250)
            assert whole[-1].itl == pytest.approx(62.5)
            await server.kill()
            assert is_missing(Missing.UNREACHABLE)(await read())
            await asyncio.sleep(WINDOW / 2)
            await server.start()
            again = await until(read, is_traffic, "traffic after a restart")
            again += [await read() for _ in range(10)]
            assert [reported for reported in again if not is_true(reported)] == []
            await server.wipe()
            assert is_missing(Missing.UNREACHABLE)(await read())
            await exporter.die()
            await server.start()
            await until(read, is_missing(Missing.NO_SERIES), "Prometheus lost its data")
            await exporter.serve()
            result = await until(read, is_traffic, "traffic is read again")
            assert [reported for reported in result if not is_true(reported)] == []


async def test_past_traffic_is_read_in_steps_up_to_the_requested_end(
    prometheus_program: Path, exporter: Exporter, tmp_path: Path
):
    server = prometheus(prometheus_program, tmp_path, exporter, dynamo_namespace=NAMESPACE)
    async with opened(server) as reader:
        assert await reader.past(60.0, 0.0) == (), "no Prometheus"
        async with server:

            async def read() -> Any:
                return await reader.past(60.0, 4.0)

            def is_whole(reported: Any) -> bool:
                # Only the newest two steps; older ones may precede the first scrape.
                rates = [each.traffic.requests / 4 for each in reported[-2:]]
                return len(rates) == 2 and all(rate == pytest.approx(RATE, rel=0.25) for rate in rates)

            past = (await until(read, is_whole, "two steps of the past"))[-1]
            assert [each.ago for each in past][-2:] == [4.0, 0.0]
            assert past[-1].traffic.isl == pytest.approx(1000)
            assert past[-1].traffic.osl == pytest.approx(150)
            async with opened(server, model="other") as other:
                assert await other.past(60.0, 0.0) == ()


async def test_no_requests_are_zero_traffic_and_a_missing_frontend_is_missing_traffic(
    prometheus_program: Path, exporter: Exporter, tmp_path: Path
):
    async with (
        prometheus(prometheus_program, tmp_path, exporter, dynamo_namespace=NAMESPACE) as server,
        reading(server) as read,
    ):
        await until(read, is_traffic, "traffic is read")
        exporter.turn(busy=False)
        silent = await until(
            read, lambda reported: is_traffic(reported) and reported.requests == 0, "no request arrives"
        )
        assert (silent[-1].isl, silent[-1].osl) == (pytest.approx(1000), pytest.approx(150))
        assert silent[-1].ttft is None
        exporter.turn(busy=True)
        await until(read, lambda reported: is_traffic(reported) and is_true(reported), "requests arrive again")
        await exporter.die()
        gone = await until(read, is_missing(Missing.STALE), "the frontend is not scraped any more")
        # The traffic between the last successful scrape and the failed one is unknown; the reported number is at least
        # half.
        assert all(not is_traffic(reported) or reported.requests > RATE * WINDOW / 2 for reported in gone), gone
        await until(read, is_missing(Missing.NO_SERIES, Missing.STALE), "the series disappears")


@asynccontextmanager
async def listening(
    server: NatsServer, namespace: str = NAMESPACE, mode: Mode = Mode.DISAGG
) -> AsyncIterator[RuntimeFeed]:
    options = runtime_nats_options(RuntimeNats(servers=(server.url,)), "")
    assert options is not None
    loop = asyncio.get_running_loop()
    passes = ForwardPasses(mode, loop.time)
    async with NatsListener(options) as listener, watch_engines(listener, [namespace], passes) as feed:
        yield feed


async def report(server: NatsServer, *workers: str) -> None:
    client = await nats.connect(server.url)
    for worker in workers:
        reported_on = subject(NAMESPACE).replace("*", "backend", 1).replace("*", "generate", 1)
        await client.publish(reported_on, message(worker))
        await client.publish(reported_on.replace("team-a", "team-b"), message("theirs"))
    await client.close()


async def test_engine_metrics_continue_after_an_outage_of_nats_and_stay_empty_during_it(nats_server: NatsServer):
    async def heard(*workers: str) -> bool:
        await report(nats_server, *workers)
        reported = feed.read()
        return not isinstance(reported, InputUnavailable) and {each.worker_id for each in reported} == set(workers)

    async with listening(nats_server) as feed:
        assert is_missing(Missing.UNREACHABLE, Missing.NO_FORWARD_PASSES)(feed.read())
        await eventually(lambda: heard("a", "b"), "two engines report")
        await nats_server.kill()
        await eventually(lambda: feed._listener.health is not BusHealth.CONNECTED, "the loss is noticed")
        # Only now, because messages in transit still arrive.
        feed.passes._newest.clear()
        assert is_missing(Missing.UNREACHABLE)(feed.read())
        await nats_server.start()
        await eventually(lambda: heard("a", "c"), "engines report over the next connection")
        _, body = await LocalHttp(nats_server.monitoring_port).request("GET", "/connz")
        own = [each for each in json.loads(body)["connections"] if each.get("name") == "dynamo-planner"]
        assert len(own) == 1
        assert own[0]["in_msgs"] == 0
        assert own[0]["out_msgs"] > 0


async def test_a_subscription_lasts_until_it_is_closed_also_if_messages_cannot_be_handled(nats_server: NatsServer):
    options = runtime_nats_options(RuntimeNats(), f" {nats_server.url} , nats://127.0.0.1:1")
    assert options is not None
    heard: list[str] = []

    def keep(_subject: str, _payload: bytes) -> None:
        heard.append("kept")
        raise ValueError("bad message")

    async with NatsListener(options) as listener:
        left = await listener.listen(subject(NAMESPACE), lambda reported_on, payload: heard.append("left"))
        kept = await listener.listen(subject(NAMESPACE), keep)

        async def both() -> bool:
            await report(nats_server, "a")
            return {"left", "kept"} <= set(heard)

        await eventually(both, "both report")
        await left.close()
        heard.clear()

        async def one() -> bool:
            await report(nats_server, "a")
            return "kept" in heard

        await eventually(one, "the other one still reports")
        assert "left" not in heard
        await kept.close()


@pytest.fixture(scope="module")
async def tiny(dynamo_runtime: RuntimeEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return await tiny_model(dynamo_runtime, tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def runtime(
    dynamo_runtime: RuntimeEnvironment, tiny: Path, etcd_server: EtcdServer, nats_server: NatsServer, tmp_path: Path
) -> Runtime:
    planes = etcd_planes(etcd_server.url, nats_server.url)
    return Runtime(dynamo_runtime, tiny, planes, tmp_path, namespace="shop")


async def test_metrics_of_the_real_runtime_are_read(
    runtime: Runtime, nats_server: NatsServer, prometheus_program: Path, tmp_path: Path
):
    """A frontend and two mockers: engine metrics over NATS, and the frontend's traffic through Prometheus."""
    frontend = runtime.frontend()
    workers = [runtime.mocker("prefill", "prefill"), runtime.mocker("decode", "decode")]
    port = frontend.http.port
    job = ScrapeJob("frontend", [f"{LOOPBACK}:{port}"], {"dynamo_namespace": "shop"})
    server = PrometheusServer(prometheus_program, tmp_path / "prometheus", [job], interval=0.5)
    try:
        for process in (frontend.process, *workers):
            await process.start()
        async with server, listening(nats_server, "shop") as feed, reading(server, "shop") as read:

            async def asked() -> bool:
                status, _ = await frontend.chat("tiny", max_tokens=16)
                return status == 200

            await eventually(asked, "the frontend answers", 60)
            busy: list[ForwardPass] = []

            async def engines() -> bool:
                await asked()
                reported = feed.read()
                if not isinstance(reported, InputUnavailable):
                    busy.extend(each for each in reported if each.wall_time > 0)
                return not isinstance(reported, InputUnavailable) and {each.pool for each in reported} == set(Pool)

            await eventually(engines, "both pools report what they do", 60)

            async def traffic() -> bool:
                await engines()
                reported = await read()
                return isinstance(reported, Traffic) and reported.requests > 0 and reported.isl > 0 and reported.osl > 0

            await eventually(traffic, "the frontend's traffic is read", 60)
            assert not feed.passes.ignored
            assert any(each.scheduled.num_decode_requests or each.scheduled.num_prefill_requests for each in busy)
    finally:
        for process in (*workers, frontend.process):
            await process.stop()
