"""What users and operators do with a graph: send chats to its frontend, list its workers, kill one."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

import aiohttp
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import PODS, SERVICES, ObjectKey
from dynamo_shared.kube import KubeClient
from prometheus_client.parser import text_string_to_metric_families
from yarl import URL

from tests.integration.platform import eventually

from . import graph
from .node import Node

ANSWERS_WITHIN = 20.0
SYSTEM_PORT = 9090
#: Counts answers of a worker; calls of its other endpoints (recovery of events) do not come from users.
ANSWERED = ("dynamo_component_requests_total", {"dynamo_endpoint": "generate"})


class Served:
    """A graph in use."""

    def __init__(self, kube: KubeClient, key: ObjectKey, node: Node) -> None:
        self._kube = kube
        self._key = key
        self._node = node

    async def pods(self, component: str) -> list[KubeObject]:
        """Pods of a component that are not terminating, ready or not."""
        selector = f"{labels.GRAPH_DEPLOYMENT_NAME}={self._key.name},{labels.COMPONENT}={component}"
        items = await self._kube.list(PODS, self._key.namespace, label_selector=selector)
        return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]

    async def ready_pods(self, component: str) -> list[KubeObject]:
        """Pods that pass their readiness probe."""
        return [pod for pod in await self.pods(component) if is_ready(pod)]

    async def frontend_url(self) -> str:
        """The ClusterIP of the frontend's Service; only kube-proxy translates it to a pod's address."""
        service = await self._kube.get(SERVICES, ObjectKey(self._key.namespace, f"{self._key.name}-frontend"))
        return _url(service["spec"]["clusterIP"], service["spec"]["ports"][0]["port"])

    async def chat(self, text: str, tokens: int = 8) -> tuple[int, KubeObject]:
        """Status and body of one chat completion; AssertionError if the body is not JSON."""
        body = {"model": graph.MODEL_NAME, "max_tokens": tokens, "messages": [{"role": "user", "content": text}]}
        url = f"{await self.frontend_url()}/v1/chat/completions"
        async with _session() as session, session.post(url, json=body) as answer:
            assert "json" in answer.content_type, await answer.text()
            return answer.status, await answer.json()

    async def first_answer(self, within: float = 30.0) -> KubeObject:
        """The body of the first successful chat: a frontend is ready before it has read the workers' cards."""

        async def answer() -> KubeObject | None:
            status, body = await self.chat("Hello", 8)
            return body if status == 200 else None

        body: KubeObject = await eventually(answer, "a chat completion", within)
        return body

    async def answered(self, component: str) -> dict[str, float]:
        """Requests answered by each ready worker of a component, by pod."""
        counts = {}
        async with _session() as session:
            for pod in await self.ready_pods(component):
                url = f"{_url(pod['status']['podIP'], SYSTEM_PORT)}/metrics"
                async with session.get(url) as answer:
                    counts[pod["metadata"]["name"]] = _value(await answer.text(), *ANSWERED)
        return counts

    async def answering(self, component: str, requests: int) -> set[str]:
        """Pods of a component that helped to answer this many different chats at once."""
        before = await self.answered(component)
        answers = await asyncio.gather(*(self.chat(f"Question {number}: why? " * 8, 32) for number in range(requests)))
        assert {status for status, _ in answers} == {200}, answers
        after = await self.answered(component)
        return {pod for pod, count in after.items() if count > before.get(pod, 0)}

    async def kill(self, pod: KubeObject) -> None:
        """SIGKILL to the first process of a pod's container, from outside, like the OOM killer."""
        (container,) = pod["status"]["containerStatuses"]
        await self._node.kill(container["containerID"].rpartition("/")[2])


@dataclass
class Traffic:
    """The results of steady requests: the number answered, and time and reason of each failure."""

    answered: int = 0
    failed: list[str] = field(default_factory=list)


@asynccontextmanager
async def traffic(served: Served, every: float = 0.1, tokens: int = 8) -> AsyncIterator[Traffic]:
    """Chats at this interval, each on its own connection, while the block runs. None is retried."""
    result, started = Traffic(), time.monotonic()

    async def one(number: int) -> None:
        sent = time.monotonic() - started
        try:
            status, body = await served.chat(f"Question {number}: why?", tokens)
        except (aiohttp.ClientError, TimeoutError, AssertionError) as error:
            result.failed.append(f"{sent:.1f} s: {type(error).__name__} {error}")
            return
        if status == 200:
            result.answered += 1
        else:
            result.failed.append(f"{sent:.1f} s: {status} {body}")

    async with asyncio.TaskGroup() as chats:

        async def send() -> None:
            for number in itertools.count():
                chats.create_task(one(number))
                await asyncio.sleep(every)

        sender = asyncio.create_task(send())
        try:
            yield result
        finally:
            sender.cancel()


def is_ready(pod: KubeObject) -> bool:
    """By its condition, which only the kubelet sets."""
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def ready_since(pod: KubeObject) -> datetime:
    """The time at which it last became ready or not ready."""
    (ready,) = (each for each in pod["status"]["conditions"] if each["type"] == "Ready")
    return datetime.fromisoformat(ready["lastTransitionTime"])


def _url(host: str, port: int) -> str:
    """A URL with brackets around an IPv6 address."""
    return str(URL.build(scheme="http", host=host, port=port))


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWERS_WITHIN))


def _value(text: str, name: str, where: Mapping[str, str]) -> float:
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return sum(sample.value for sample in samples if sample.name == name and where.items() <= sample.labels.items())
