"""GPUs as DCGM exporters tell of them, where nodes have no labels (operator behaviour, section 7.8)."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import aiohttp
import structlog
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import PODS
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import Forbidden
from prometheus_client.parser import text_string_to_metric_families

from dynamo_planner.requests.hardware import GpuNode

SELECTORS = ("app=nvidia-dcgm-exporter", "app=dcgm-exporter", "app.kubernetes.io/name=dcgm-exporter")
TEMPLATE_VARIABLE = "DCGM_METRICS_ENDPOINT_TEMPLATE"
DEFAULT_TEMPLATE = "http://{POD_IP}:9400/metrics"
#: How long what was found is believed. Seconds.
FRESH = 60.0
#: For one exporter. Seconds.
REQUEST_TIMEOUT, CONNECT_TIMEOUT = 5.0, 3.0
#: Bytes of one answer, and exporters asked at once.
MAX_ANSWER, AT_ONCE = 4 << 20, 16

_TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP"
_MEMORY = ("DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_RESERVED")

log = structlog.get_logger("dynamo.planner.hardware")


class DcgmExporters:
    """Asks the exporters of a cluster, at most once a minute however many requests want to know."""

    def __init__(self, kube: KubeClient, clock: Callable[[], float], template: str | None = None) -> None:
        self._kube = kube
        self._clock = clock
        self._template = template or os.environ.get(TEMPLATE_VARIABLE) or DEFAULT_TEMPLATE
        self._lock = asyncio.Lock()
        self._found: list[GpuNode] = []
        self._asked: float | None = None

    async def nodes(self) -> list[GpuNode]:
        """GPUs by node; nodes whose exporter does not answer are left out. KubeError where pods cannot be listed."""
        async with self._lock:
            if self._asked is None or self._clock() - self._asked >= FRESH:
                self._found = await self._ask()
                self._asked = self._clock()
            return self._found

    async def _ask(self) -> list[GpuNode]:
        pods: dict[str, KubeObject] = {}
        try:
            for selector in SELECTORS:
                listed = await self._kube.list(PODS, label_selector=selector)
                pods |= {pod["metadata"]["uid"]: pod for pod in listed.items}
        except Forbidden as error:
            log.info("exporters of GPU metrics cannot be looked for", error=str(error))
            return []
        running = [pod for pod in pods.values() if _address(pod)]
        slots = asyncio.Semaphore(AT_ONCE)
        timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT, sock_connect=CONNECT_TIMEOUT)
        async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session:
            answers = await asyncio.gather(*(self._scrape(session, slots, pod) for pod in running))
        return [node for node in answers if node is not None]

    async def _scrape(
        self, session: aiohttp.ClientSession, slots: asyncio.Semaphore, pod: KubeObject
    ) -> GpuNode | None:
        url = self._template.replace("{POD_IP}", _address(pod))
        async with slots:
            try:
                async with session.get(url, allow_redirects=False) as response:
                    response.raise_for_status()
                    body = await response.content.read(MAX_ANSWER + 1)
                    while len(body) <= MAX_ANSWER and (more := await response.content.read(MAX_ANSWER)):
                        body += more
            except (aiohttp.ClientError, TimeoutError) as error:
                log.info("an exporter of GPU metrics does not answer", pod=pod["metadata"]["name"], error=repr(error))
                return None
        if len(body) > MAX_ANSWER:
            log.info("an exporter of GPU metrics answers too much", pod=pod["metadata"]["name"])
            return None
        return parse(body.decode(errors="replace"), pod.get("spec", {}).get("nodeName") or pod["metadata"]["name"])


def parse(text: str, node: str) -> GpuNode | None:
    """GPUs of a node from its exporter's metrics; None where they tell of none, or are no metrics at all.

    A GPU is one `gpu` label of the temperature; its memory is free, used and reserved together (MiB), the largest of them all.
    """
    gpus: set[str] = set()
    product, memory = "", defaultdict[str, float](float)
    try:
        for sample in _samples(text):
            gpu = sample.labels.get("gpu", "")
            if sample.name == _TEMPERATURE:
                gpus.add(gpu)
                product = product or sample.labels.get("modelName", "")
            elif sample.name in _MEMORY:
                memory[gpu] += sample.value
    except ValueError:
        return None
    if not gpus or not product or not memory:
        return None
    return GpuNode(node, product, len(gpus), round(max(memory.values())))


def _samples(text: str) -> Iterable[Any]:
    return (sample for family in text_string_to_metric_families(text) for sample in family.samples)


def _address(pod: KubeObject) -> str:
    status = pod.get("status", {})
    if status.get("phase") != "Running":
        return ""
    address = str(status.get("podIP") or "")
    return f"[{address}]" if ":" in address else address
