"""Reads GPUs from DCGM exporters if nodes have no labels (operator behaviour, section 7.8).

Any pod can have an exporter's label and answer anything. So this asks only pods in the configured namespaces and with
the configured ServiceAccounts, one for each node, and limits their answers.
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
#: An answer is valid this long. Seconds.
FRESH = 60.0
#: Time-outs of one exporter. Seconds.
REQUEST_TIMEOUT, CONNECT_TIMEOUT = 5.0, 3.0
#: Time-out of all exporters together: no request waits longer for a cluster whose exporters hang. Seconds.
ALL_WITHIN = 20.0
#: Size limit of an answer in bytes, and the number of exporters asked at once. A node with 16 GPUs needs half of the
#: size.
MAX_ANSWER, AT_ONCE = 1 << 20, 16
#: Limits of the relevant lines of an answer, and of the characters of a line.
MAX_LINES, MAX_LINE = 1024, 2048
#: Largest number of exporters: the largest Kubernetes clusters have 5,000 nodes.
MAX_PODS = 5000
#: Largest plausible number of GPUs of a node, and of MiB of a GPU: twice the largest existing ones.
MAX_GPUS, MAX_MEMORY = 32, 1 << 20

_TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP"
_MEMORY = ("DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_RESERVED")

log = structlog.get_logger("dynamo.planner.hardware")


class DcgmExporters:
    """Asks the exporters of a cluster, at most once a minute for all requests together."""

    def __init__(self, kube: KubeClient, clock: Callable[[], float], settings: Dcgm) -> None:
        self._kube = kube
        self._settings = settings
        self._clock = clock
        self._template = os.environ.get(TEMPLATE_VARIABLE) or DEFAULT_TEMPLATE
        self._asking: Joined[None, list[GpuNode]] = Joined()
        self._known: list[GpuNode] = []
        self._asked: float | None = None
        self.silent = 0
        """exporters without a usable answer at the last time"""

    async def nodes(self) -> list[GpuNode]:
        """GPUs by node, without nodes whose exporter does not answer. Raises KubeError if pods cannot be listed."""
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
            log.info("cannot list the exporters of GPU metrics", error=str(error))
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
            log.info("the answer of an exporter of GPU metrics is too large", pod=pod["metadata"]["name"])
            return None
        return parse(body.decode(errors="replace"), pod["spec"]["nodeName"])


def exporters(pods: Iterable[KubeObject], accounts: frozenset[str]) -> list[KubeObject]:
    """The pods to ask: running, with one of the ServiceAccounts, one for each node."""
    by_node: dict[str, KubeObject] = {}
    for pod in sorted(pods, key=lambda each: str(each["metadata"].get("creationTimestamp", ""))):
        spec = pod.get("spec", {})
        if spec.get("serviceAccountName") in accounts and spec.get("nodeName") and _address(pod):
            by_node.setdefault(spec["nodeName"], pod)
    return list(by_node.values())[:MAX_PODS]


def parse(text: str, node: str) -> GpuNode | None:
    """GPUs of a node from its exporter's metrics; None if the text has no GPUs, too many, or no metrics.

    Each `gpu` label of the temperature is a GPU. Memory is the sum of free, used and reserved (MiB), of the largest
    GPU.
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
    """Samples of the relevant metrics, from the lines that have one."""
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
