"""A graph under waves of traffic: metrics of a simulated frontend, a real Prometheus, and the whole platform."""

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web
from dynamo_devcluster.ports import LOOPBACK
from dynamo_planner.app import PlannerService
from dynamo_pod_builder.app import PodBuilderService
from dynamo_scaler.app import ScalerService
from dynamo_shared.api.objects import KubeObject, annotations
from dynamo_shared.api.registry.annotations import SCALING_INTENTS
from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    ObjectKey,
)
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import Service
from dynamo_shared.runtime.endpoints import serving
from dynamo_watcher.app import WatcherService
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from tests.building.prometheus import PrometheusServer, ScrapeJob

from .platform import graph, platform, settings, until_state

ISL, OSL = 1000, 100
GRAPH = "wave"
MODEL = "tiny"

#: One prefill engine handles 10 requests of ISL tokens a second, one decode engine about 6 of OSL tokens.
PREFILL = {"prefill_isl": [100, 500, 1000, 2000, 4000], "prefill_ttft": [10.0, 50.0, 100.0, 200.0, 400.0]}
_GRID = [(batch, context) for batch in (1, 5, 10, 15, 19) for context in (500, 1050, 2000) if batch * context <= 20_000]
DECODE = {
    "x_kv_usage": [batch * context / 20_000 for batch, context in _GRID],
    "y_context_length": [float(context) for _, context in _GRID],
    "z_itl": [10.0 + batch * context / 1050 for batch, context in _GRID],
    "z_thpt_per_gpu": [1000.0 * batch / (10.0 + batch * context / 1050) for batch, context in _GRID],
    "max_kv_tokens": [20_000],
}


def sine(least: float, most: float, period: float) -> Callable[[float], float]:
    """Requests a second as a function of seconds: minimal at the start and after each period."""
    return lambda at: least + (most - least) * (1 - math.cos(2 * math.pi * at / period)) / 2


class Frontend:
    """Metrics of a frontend whose requests arrive at a rate; each scrape counts those since the last one."""

    def __init__(self, rate: Callable[[float], float]) -> None:
        self.rate = rate
        self._began = self._counted = time.monotonic()
        self._rest = 0.0
        self._registry = registry = CollectorRegistry()
        self._requests = Counter("dynamo_frontend_requests_started", "-", ["model"], registry=registry)
        values = {
            "input_sequence_tokens": ISL,
            "output_sequence_tokens": OSL,
            "time_to_first_token_seconds": 0.15,
            "inter_token_latency_seconds": 0.02,
            "request_duration_seconds": 2.0,
        }
        self._histograms = [
            (Histogram(f"dynamo_frontend_{name}", "-", ["model"], registry=registry).labels(MODEL), value)
            for name, value in values.items()
        ]
        self._requests.labels(MODEL)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        return app

    async def _metrics(self, _: web.Request) -> web.Response:
        now = time.monotonic()
        while self._counted < now:
            step = min(0.1, now - self._counted)
            self._rest += step * self.rate(self._counted - self._began)
            self._counted += step
        while self._rest >= 1:
            self._rest -= 1
            self._requests.labels(MODEL).inc()
            for histogram, value in self._histograms:
                histogram.observe(value)
        return web.Response(body=generate_latest(self._registry))


class Wave:
    """A planned graph and its replicas."""

    def __init__(self, kube: KubeClient, namespace: str, prometheus: PrometheusServer) -> None:
        self._kube = kube
        self.namespace = namespace
        self.prometheus = prometheus

    async def replicas(self) -> dict[str, int]:
        """Pods that Deployments request, by component."""
        deployments = await self._kube.list(DEPLOYMENTS, self.namespace)
        return {
            each["metadata"]["labels"]["nvidia.com/dynamo-component"]: each["spec"]["replicas"] for each in deployments
        }

    async def settled(self) -> bool:
        """Whether no scaling request is delayed, as a second step down is for a minute, and pods match the adapters."""
        stored = await self._kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(self.namespace, GRAPH))
        adapters = await self._kube.list(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, self.namespace)
        desired = {each["spec"]["dgdRef"]["componentName"]: each["spec"]["replicas"] for each in adapters}
        return SCALING_INTENTS not in annotations(stored) and desired.items() <= (await self.replicas()).items()

    async def planning(self) -> KubeObject:
        """The graph's condition for planning."""
        stored = await self._kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(self.namespace, GRAPH))
        results = [entry for entry in stored["status"]["conditions"] if entry["type"] == "Planning"]
        return results[0] if results else {}

    async def watched(self, seconds: float) -> list[dict[str, int]]:
        """Record the replicas of prefill and decode every half second."""
        observed = []
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            now = await self.replicas()
            observed.append({name: now[name] for name in ("Prefill", "Decode")})
            await asyncio.sleep(0.5)
        return observed


@asynccontextmanager
async def riding(  # noqa: PLR0917 - a platform's parts
    plane: Any, nats: Any, kube: KubeClient, namespace: str, program: Path, folder: Path, **config: Any
) -> AsyncIterator[tuple[Wave, Frontend]]:
    """The platform, a graph with planning, and a Prometheus that scrapes its frontend; no traffic yet."""
    frontend = Frontend(lambda _: 2.0)
    async with serving(frontend.app(), LOOPBACK, 0) as port:
        job = ScrapeJob("frontend", [f"{LOOPBACK}:{port}"], {"dynamo_namespace": f"{namespace}-{GRAPH}"})
        async with PrometheusServer(program, folder / "prometheus", [job], interval=0.5) as prometheus:
            parts: list[Service] = [WatcherService(), PodBuilderService(), ScalerService(), PlannerService()]
            configured = settings(
                plane.kubeconfig,
                nats.url,
                PLATFORM__KUBERNETES__NAMESPACES=namespace,
                INFRASTRUCTURE__PROMETHEUS_ENDPOINT=prometheus.url,
            )
            async with platform(configured, parts):
                await _ask(kube, namespace, config)
                await until_state(kube, ObjectKey(namespace, GRAPH), "successful")
                yield Wave(kube, namespace, prometheus), frontend


async def _ask(kube: KubeClient, namespace: str, config: dict[str, Any]) -> None:
    planner = {
        "mode": "disagg",
        "optimization_target": "sla",
        "ttft_ms": 500,
        "itl_ms": 50,
        "max_gpu_budget": 16,
        "enable_throughput_scaling": True,
        "model_name": MODEL,
        **config,
    }
    for name, data in (
        (f"planner-config-{GRAPH}", {"planner_config.json": json.dumps(planner)}),
        (
            f"planner-profile-data-{GRAPH}",
            {"prefill_raw_data.json": json.dumps(PREFILL), "decode_raw_data.json": json.dumps(DECODE)},
        ),
    ):
        metadata = {"name": name, "namespace": namespace}
        await kube.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    desired = graph(namespace, GRAPH)
    desired["metadata"]["annotations"] = {"nvidia.com/planner-config": f"planner-config-{GRAPH}"}
    for component in desired["spec"]["components"][1:]:
        component["scalingAdapter"] = {}
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, desired)
