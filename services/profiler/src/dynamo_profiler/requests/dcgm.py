"""GPUs as DCGM exporters report them, where nodes have no labels (operator behaviour, section 7.8).

Any pod can carry an exporter's label, and answer anything. So only pods of the namespaces and with the ServiceAccounts that
the settings name are asked, one for each node, and what they answer is bounded.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import islice
from math import isfinite
from typing import Any

import aiohttp
import structlog
from dynamo_shared.aio import Joined
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import env, ports
from dynamo_shared.api.resources import PODS
from dynamo_shared.api.untrusted.addresses import in_url, may_be_called, parsed
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import Forbidden
from dynamo_shared.runtime.outbound import read_at_most
from dynamo_shared.runtime.settings.planner import Dcgm
from prometheus_client.parser import text_string_to_metric_families

from dynamo_profiler.requests.hardware import GpuNode

SELECTORS = ("app=nvidia-dcgm-exporter", "app=dcgm-exporter", "app.kubernetes.io/name=dcgm-exporter")
TEMPLATE_VARIABLE = env.DCGM_METRICS_ENDPOINT_TEMPLATE
DEFAULT_TEMPLATE = f"http://{{POD_IP}}:{ports.DCGM_EXPORTER.number}/metrics"
#: How long an answer is believed. Seconds.
FRESH = 60.0
#: For one exporter. Seconds.
REQUEST_TIMEOUT, CONNECT_TIMEOUT = 5.0, 3.0
#: For all exporters together: no request waits longer for a cluster whose exporters hang. Seconds.
ALL_WITHIN = 20.0
#: Bytes of one answer, and exporters asked at once. A node with 16 GPUs has half of it.
MAX_ANSWER, AT_ONCE = 1 << 20, 16
#: Lines of an answer that are read, of those that say something here, and characters of one.
MAX_LINES, MAX_LINE = 1024, 2048
#: Exporters that are asked: the largest clusters of Kubernetes have 5,000 nodes.
MAX_PODS = 5000
#: GPUs of one node, and MiB of one GPU, that are believed: twice what the largest ones have.
MAX_GPUS, MAX_MEMORY = 32, 1 << 20

_TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP"
_MEMORY = ("DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_RESERVED")

log = structlog.get_logger("dynamo.planner.hardware")


class DcgmExporters:
    """Asks the exporters of a cluster, at most once a minute however many requests want to know."""

    def __init__(self, kube: KubeClient, clock: Callable[[], float], settings: Dcgm) -> None:
        self._kube = kube
        self._settings = settings
        self._clock = clock
        self._template = os.environ.get(TEMPLATE_VARIABLE) or DEFAULT_TEMPLATE
        self._asking: Joined[None, list[GpuNode]] = Joined()
        self._known: list[GpuNode] = []
        self._asked: float | None = None
        self.silent = 0
        """exporters that were asked last and gave no answer to go by"""

    async def nodes(self) -> list[GpuNode]:
        """GPUs by node; nodes whose exporter does not answer are left out. KubeError where pods cannot be listed."""
        if self._asked is not None and self._clock() - self._asked < FRESH:
            return self._known
        return await self._asking.result(None, self._ask)

    async def _ask(self) -> list[GpuNode]:
        self._known = await self._reported()
        self._asked = self._clock()
        return self._known

    async def _reported(self) -> list[GpuNode]:
        pods: list[KubeObject] = []
        self.silent = 0
        try:
            for namespace in self._settings.namespaces:
                for selector in SELECTORS:
                    pods += await self._kube.list(PODS, namespace, label_selector=selector)
        except Forbidden as error:
            log.info("exporters of GPU metrics cannot be looked for", error=str(error))
            return []
        running = exporters(pods, frozenset(self._settings.service_accounts))
        slots = asyncio.Semaphore(AT_ONCE)
        timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT, sock_connect=CONNECT_TIMEOUT)
        async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session:
            asked = [asyncio.create_task(self._scrape(session, slots, pod)) for pod in running]
            try:
                await asyncio.wait(asked, timeout=ALL_WITHIN) if asked else None
            finally:
                for task in asked:
                    task.cancel()
                answers = await asyncio.gather(*asked, return_exceptions=True)
        nodes = [node for node in answers if isinstance(node, GpuNode)]
        self.silent = len(running) - len(nodes)
        return nodes

    async def _scrape(
        self, session: aiohttp.ClientSession, slots: asyncio.Semaphore, pod: KubeObject
    ) -> GpuNode | None:
        url = self._template.replace("{POD_IP}", _address(pod))
        async with slots:
            try:
                async with session.get(url, allow_redirects=False) as response:
                    response.raise_for_status()
                    body = await read_at_most(response, MAX_ANSWER)
            except (aiohttp.ClientError, TimeoutError) as error:
                log.info("an exporter of GPU metrics does not answer", pod=pod["metadata"]["name"], error=repr(error))
                return None
        if body is None:
            log.info("an exporter of GPU metrics answers too much", pod=pod["metadata"]["name"])
            return None
        return parse(body.decode(errors="replace"), pod["spec"]["nodeName"])


def exporters(pods: Iterable[KubeObject], accounts: frozenset[str]) -> list[KubeObject]:
    """Pods that are asked: running, with one of the ServiceAccounts, one for each node."""
    by_node: dict[str, KubeObject] = {}
    for pod in sorted(pods, key=lambda each: str(each["metadata"].get("creationTimestamp", ""))):
        spec = pod.get("spec", {})
        if spec.get("serviceAccountName") in accounts and spec.get("nodeName") and _address(pod):
            by_node.setdefault(spec["nodeName"], pod)
    return list(by_node.values())[:MAX_PODS]


def parse(text: str, node: str) -> GpuNode | None:
    """GPUs of a node from its exporter's metrics; None where they report none, too many, or are not metrics at all.

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
            elif sample.name in _MEMORY and isfinite(sample.value):
                memory[gpu] += sample.value
    except ValueError:
        return None
    largest = max(memory.values(), default=0.0)
    if not product or not 0 < len(gpus) <= MAX_GPUS or not 1 <= largest <= MAX_MEMORY:
        return None
    return GpuNode(node, product[:128], len(gpus), round(largest))


def _samples(text: str) -> Iterable[Any]:
    """Samples of the metrics that are read here, of the lines of an answer that have one."""
    prefixes = (_TEMPERATURE, *_MEMORY)
    lines = (line for line in text.splitlines() if line.startswith(prefixes) and len(line) <= MAX_LINE)
    read = "\n".join(islice(lines, MAX_LINES))
    return (sample for family in text_string_to_metric_families(f"{read}\n") for sample in family.samples)


def _address(pod: KubeObject) -> str:
    status = pod.get("status", {})
    if status.get("phase") != "Running":
        return ""
    address = parsed(str(status.get("podIP") or ""))
    if address is None or not may_be_called(address):
        return ""
    return in_url(str(address))
