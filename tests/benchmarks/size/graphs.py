"""Graphs by the thousand, created in many namespaces; one of them is changed to measure the platform's reaction."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.reflector import ObjectChange, Reflector

from tests.benchmarks.graphs import COMPONENTS, IMAGE
from tests.benchmarks.platform import percentile
from tests.building.tasks import in_background
from tests.hostile.objects import component, graph
from tests.stage.api import Api
from tests.stage.cluster import namespace

PROBED, VARIABLE = "probed", "BENCH_MARK"
A_NAMESPACE = 100
"""Graphs of one namespace."""
REACTED_WITHIN = 120.0


def many(number: int) -> KubeObject:
    """The graph of a number: a frontend, a prefill and a decode component of one replica each."""
    parts = [component(name, type_) for name, type_ in zip(COMPONENTS, ("frontend", "prefill", "decode"), strict=True)]
    return graph(namespace_of(number), f"graph-{number:05}", *parts)


def namespace_of(number: int) -> str:
    """The namespace of a graph."""
    return f"size-{number // A_NAMESPACE:03}"


class Deployments:
    """Follows the Deployments that the platform creates."""

    def __init__(self) -> None:
        self.complete = 0
        """graphs that have a Deployment for each component"""
        self.available = 0
        """Deployments whose replicas are all available"""
        self._of: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._ready: set[tuple[str, str]] = set()
        self._values: dict[str, float] = {}
        self._changed = asyncio.Condition()

    async def follow(self, kube: KubeClient) -> None:
        """Follow all Deployments of the cluster until cancelled."""
        async for change in Reflector(kube, DEPLOYMENTS).changes():
            if isinstance(change, ObjectChange) and change.kind != "DELETED":
                await self._take(change.obj)

    async def _take(self, deployment: KubeObject) -> None:
        metadata = deployment["metadata"]
        owner = (metadata.get("labels") or {}).get(labels.GRAPH_DEPLOYMENT_NAME)
        if owner is None:
            return
        if metadata["namespace"] == PROBED:
            self._values.setdefault(_value(deployment), time.perf_counter())
        else:
            parts = self._of[(metadata["namespace"], owner)]
            self.complete += metadata["name"] not in parts and len(parts) == len(COMPONENTS) - 1
            parts.add(metadata["name"])
            ready = (deployment.get("status") or {}).get("availableReplicas", 0) == deployment["spec"]["replicas"]
            (self._ready.add if ready else self._ready.discard)((metadata["namespace"], metadata["name"]))
            self.available = len(self._ready)
        async with self._changed:
            self._changed.notify_all()

    async def until(self, reached: Callable[[], bool], within: float) -> bool:
        """Wait; False if the time passes before."""
        try:
            async with asyncio.timeout(within), self._changed:
                await self._changed.wait_for(reached)
        except TimeoutError:
            return False
        return True

    async def observed(self, value: str) -> float:
        """The time at which the Deployment of the probed graph had this value. TimeoutError."""
        async with asyncio.timeout(REACTED_WITHIN), self._changed:
            await self._changed.wait_for(lambda: value in self._values)
        return self._values[value]


def _value(deployment: KubeObject) -> str:
    env = [each for part in deployment["spec"]["template"]["spec"]["containers"] for each in part.get("env") or ()]
    return next((str(each.get("value")) for each in env if each["name"] == VARIABLE), "")


class Probe:
    """One graph whose environment is changed, and the time until its Deployment follows."""

    def __init__(self, api: Api, deployments: Deployments) -> None:
        self._api = api
        self._deployments = deployments
        self._number = 0

    async def create(self) -> None:
        """Create the graph, with the first value of its variable."""
        await self._api.create(namespace(PROBED))
        answer = await self._api.create(graph(PROBED, PROBED, *self._parts()))
        assert answer.ok, str(answer)
        await self._deployments.observed(str(self._number))

    async def react(self) -> float:
        """Seconds from the answer to a change until the Deployment has it."""
        self._number += 1
        answer = await self._api.patch(
            DYNAMO_GRAPH_DEPLOYMENTS, PROBED, PROBED, {"spec": {"components": self._parts()}}
        )
        assert answer.ok, str(answer)
        answered = time.perf_counter()
        return max(0.0, await self._deployments.observed(str(self._number)) - answered)

    async def reacts(self, times: int) -> tuple[float, float]:
        """p50 and p99 of several changes, one after another."""
        seconds = [await self.react() for _ in range(times)]
        return percentile(seconds, 0.5), percentile(seconds, 0.99)

    def _parts(self) -> list[KubeObject]:
        env = [{"name": VARIABLE, "value": str(self._number)}]
        template = {"spec": {"containers": [{"name": "main", "image": IMAGE, "env": env}]}}
        return [component("Frontend", "frontend", template=template, replicas=0)]


@asynccontextmanager
async def followed(kube: KubeClient) -> AsyncIterator[Deployments]:
    """Deployments, followed while the block runs."""
    deployments = Deployments()
    async with in_background(deployments.follow(kube)):
        yield deployments


async def create(api: Api, numbers: range) -> None:
    """Create graphs with their namespaces, as fast as the API server accepts them."""
    for name in sorted({namespace_of(number) for number in numbers}):
        await api.create(namespace(name))
    answers = await api.create_all([many(number) for number in numbers])
    refused = [answer for answer in answers if not answer.ok]
    assert not refused, f"{len(refused)} graphs were refused; the first: {refused[0]}"
