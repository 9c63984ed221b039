"""Readiness is the combined state of the parts."""

import asyncio
from collections.abc import Iterable

import aiohttp
import pytest
from dynamo_shared.runtime import Health, HealthState, endpoints
from dynamo_shared.runtime.endpoints import health_app, metrics_app, serving
from dynamo_shared.runtime.metrics import Metrics
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector


def test_a_degraded_part_still_works_and_a_failed_one_does_not():
    health = Health()
    health.expect("a")
    assert not health.ready
    health.set("a", HealthState.DEGRADED, "on old data")
    assert health.ready
    health.set("b", HealthState.FAILED, "no")
    assert not health.ready
    health.ok("b")
    assert health.report() == {
        "ready": True,
        "parts": {"a": {"state": "degraded", "message": "on old data"}, "b": {"state": "ok", "message": ""}},
    }


def test_one_part_can_be_queried_alone():
    health = Health()
    health.set("etcd", HealthState.FAILED, "away")
    health.ok("admission")
    health.set("admission/facts", HealthState.DEGRADED, "old")
    assert not health.ready
    assert health.ready_part("admission") is True
    assert health.ready_part("etcd") is False
    assert health.ready_part("watcher") is None
    health.set("admission/facts", HealthState.FAILED)
    assert health.ready_part("admission") is False


async def test_a_caller_can_wait_for_readiness():
    health = Health()
    health.expect("a")
    waiting = asyncio.create_task(health.wait_ready())
    health.set("a", HealthState.FAILED, "still")
    await asyncio.sleep(0)
    assert not waiting.done()
    health.ok("a")
    await asyncio.wait_for(waiting, 60)


async def test_an_incomplete_request_does_not_keep_its_connection(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(endpoints, "KEPT_FOR", 0.1)
    async with asyncio.timeout(10), serving(health_app(Health()), "127.0.0.1", 0) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /healthz HTTP/1.1\r\n")
        assert await reader.read() == b""
        writer.close()


async def test_endpoints_answer():
    health, metrics = Health(), Metrics()
    health.expect("a")
    metrics.kube_request("POST", "pods", 201)
    async with (
        serving(health_app(health), "127.0.0.1", 0) as health_port,
        serving(metrics_app(metrics.registry), "127.0.0.1", 0) as metrics_port,
        aiohttp.ClientSession() as session,
    ):
        async with session.get(f"http://127.0.0.1:{health_port}/readyz") as answer:
            assert answer.status == 503
            assert (await answer.json())["parts"]["a"]["message"] == "starting"
        for part, status in (("a", 503), ("b", 404)):
            async with session.get(f"http://127.0.0.1:{health_port}/readyz/{part}") as answer:
                assert answer.status == status
        async with session.get(f"http://127.0.0.1:{health_port}/healthz") as answer:
            assert answer.status == 200
        health.ok("a")
        async with session.get(f"http://127.0.0.1:{health_port}/readyz") as answer:
            assert answer.status == 200
        async with session.get(f"http://127.0.0.1:{metrics_port}/metrics") as answer:
            text = await answer.text()
    assert 'dynamo_platform_kube_requests_total{code="201",method="POST",resource="pods"} 1.0' in text


async def test_a_client_that_reads_metrics_without_a_pause_delays_no_one():
    """All that a hundred connections requested was written at once, and probes and Prometheus waited for it."""
    written = 0

    class Counted(Collector):
        def collect(self) -> Iterable[Metric]:
            nonlocal written
            written += 1
            return ()

    registry = CollectorRegistry()
    registry.register(Counted())
    written = 0
    request = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
    async with asyncio.timeout(60), serving(metrics_app(registry), "127.0.0.1", 0) as port:
        pods = [await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0)) for _ in range(50)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _, each in (*pods, (reader, writer)):
            each.write(request)
        await reader.readuntil(b"HTTP/1.1 200 ")
        assert written < 25
        for _, each in (*pods, (reader, writer)):
            each.close()
