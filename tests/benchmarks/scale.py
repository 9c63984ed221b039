"""`make bench-scale`: from the write of an adapter's `/scale` to the new `spec.replicas` of the component's Deployment.

Runs all services, without the controllers that create pods, so that only the platform and the API server are measured:
one at a time, and 200 adapters (of 100 graphs) at once. A sample starts when its request is sent, so in a burst it
includes the API server's own queue; `after_write` starts when the API server has answered that request. `graph` is the
time until the graph has the number, too, which may be a little later.

`alone` is without the platform: how long the API server takes for the writes of the 200 adapters, and for these plus
those of their Deployments, each sent when its adapter's is answered. No platform can be faster than the second figure.
"""

import argparse
import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    ObjectKey,
    key_of,
)
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.reflector import ObjectChange, Reflector

from tests.building.tasks import in_background

from .graphs import graph
from .platform import NAMESPACE, WITHIN, Bench, bench, percentile, servers

WORKERS = ("PrefillWorker", "DecodeWorker")
#: Time until the consequences of a burst (status, Events, pods) are over. Seconds.
SETTLE = 15.0

Place = tuple[str, str]
"""A graph, and a component of it."""


class Sample(NamedTuple):
    """Milliseconds after a request was sent."""

    written: float
    in_deployment: float
    in_graph: float

    @property
    def after_write(self) -> float:
        return max(0.0, self.in_deployment - self.written)


class Arrivals:
    """Records when a number of replicas was observed in a Deployment and in a graph."""

    def __init__(self) -> None:
        self.deployments: dict[Place, tuple[int, asyncio.Future[float]]] = {}
        self.graphs: dict[Place, tuple[int, asyncio.Future[float]]] = {}
        self.ready: dict[Place, asyncio.Event] = {}

    def expect(self, place: Place, replicas: int) -> tuple[asyncio.Future[float], asyncio.Future[float]]:
        """Futures of the times at which the Deployment and the graph have this many replicas."""
        loop = asyncio.get_running_loop()
        result = loop.create_future(), loop.create_future()
        self.deployments[place], self.graphs[place] = (replicas, result[0]), (replicas, result[1])
        return result

    async def watch_deployments(self, bench_: Bench) -> None:
        """Follow the Deployments until cancelled."""
        async for change in Reflector(bench_.kube, DEPLOYMENTS, namespace=NAMESPACE).changes():
            if isinstance(change, ObjectChange):
                object_labels = change.obj["metadata"]["labels"]
                place = (object_labels[labels.GRAPH_DEPLOYMENT_NAME], object_labels[labels.COMPONENT])
                self.ready.setdefault(place, asyncio.Event()).set()
                _arrived(self.deployments.get(place), change.obj["spec"].get("replicas"))

    async def watch_graphs(self, bench_: Bench) -> None:
        """Follow the graphs until cancelled."""
        async for change in Reflector(bench_.kube, DYNAMO_GRAPH_DEPLOYMENTS, namespace=NAMESPACE).changes():
            if isinstance(change, ObjectChange):
                for component in change.obj["spec"]["components"]:
                    place = (change.obj["metadata"]["name"], component["name"])
                    _arrived(self.graphs.get(place), component.get("replicas"))


async def run(count: int, samples: int, bursts: int, services: Sequence[str]) -> str:
    """Measure, and return the line. Without names all services run, including admission's webhooks."""
    places = [(f"graph-{number}", component) for number in range((count + 1) // 2) for component in WORKERS][:count]
    async with servers(scheduler=False, kwok_nodes=0, controllers=False) as stage:
        async with bench(stage, *services) as bench_:
            with_platform = await _with_platform(bench_, places, samples, bursts)
        return f"{with_platform} {await _alone(stage.kube, places, bursts)}"


async def _with_platform(bench_: Bench, places: Sequence[Place], samples: int, bursts: int) -> str:
    arrivals = Arrivals()
    async with in_background(arrivals.watch_deployments(bench_)), in_background(arrivals.watch_graphs(bench_)):
        return await _measure(bench_, arrivals, places, samples, bursts)


async def _alone(kube: KubeClient, places: Sequence[Place], bursts: int) -> str:
    """The API server's time for the writes of a burst without watchers; the best of some bursts."""
    deployments = {}
    for each in await kube.list(DEPLOYMENTS, NAMESPACE):
        object_labels = each["metadata"]["labels"]
        deployments[object_labels[labels.GRAPH_DEPLOYMENT_NAME], object_labels[labels.COMPONENT]] = key_of(each)

    async def write(place: Place, replicas: int, *, both: bool) -> float:
        started, patch = time.perf_counter(), {"spec": {"replicas": replicas}}
        await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, _adapter(place), patch, subresource="scale")
        if both:
            await kube.merge_patch(DEPLOYMENTS, deployments[place], patch, subresource="scale")
        return (time.perf_counter() - started) * 1000

    taken: dict[bool, list[float]] = {False: [], True: []}
    for burst in range(2 * bursts):
        await asyncio.sleep(1)
        both = bool(burst % 2)
        samples = await asyncio.gather(*(write(place, 100 + burst, both=both) for place in places))
        taken[both].append(percentile(samples, 0.99))
    return f"alone_adapters_p99_ms={min(taken[False]):.0f} alone_both_p99_ms={min(taken[True]):.0f}"


async def _measure(bench_: Bench, arrivals: Arrivals, places: Sequence[Place], samples: int, bursts: int) -> str:
    await _create(bench_, arrivals, places)
    await _scale(bench_, arrivals, places[0], 2)
    single = []
    for number in range(samples):
        single.append(await _scale(bench_, arrivals, places[number % min(4, len(places))], 3 + number))
        await asyncio.sleep(0.25)
    together: list[Sample] = []
    writes = 0.0
    for burst in range(bursts):
        await asyncio.sleep(SETTLE)
        before = bench_.usage()
        together += await asyncio.gather(*(_scale(bench_, arrivals, place, 50 + burst) for place in places))
        await asyncio.sleep(SETTLE)
        writes += bench_.usage().since(before).writes

    def figure(milliseconds: Iterable[float], share: float) -> str:
        return f"{percentile(list(milliseconds), share):.0f}"

    return (
        f"p50_scale_to_deployment_ms={figure((each.in_deployment for each in single), 0.5)} "
        f"p99_scale_to_deployment_ms={figure((each.in_deployment for each in single), 0.99)} "
        f"p50_scale_to_graph_ms={figure((each.in_graph for each in single), 0.5)} "
        f"burst_p50_ms={figure((each.in_deployment for each in together), 0.5)} "
        f"burst_p99_ms={figure((each.in_deployment for each in together), 0.99)} "
        f"burst_write_p99_ms={figure((each.written for each in together), 0.99)} "
        f"burst_after_write_p50_ms={figure((each.after_write for each in together), 0.5)} "
        f"burst_after_write_p99_ms={figure((each.after_write for each in together), 0.99)} "
        f"burst_graph_p99_ms={figure((each.in_graph for each in together), 0.99)} "
        f"writes_per_scaling={writes / len(together):.1f} n={len(places)} bursts={bursts}"
    )


async def _create(bench_: Bench, arrivals: Arrivals, places: Iterable[Place]) -> None:
    """Create graphs whose workers have adapters."""
    for name in dict.fromkeys(name for name, _ in places):
        desired = graph(name, NAMESPACE)
        for component in desired["spec"]["components"]:
            if component["name"] in WORKERS:
                component["scalingAdapter"] = {}
        await bench_.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, desired)
    async with asyncio.timeout(WITHIN):
        for place in places:
            await arrivals.ready.setdefault(place, asyncio.Event()).wait()
    await asyncio.sleep(SETTLE)


async def _scale(bench_: Bench, arrivals: Arrivals, place: Place, replicas: int) -> Sample:
    in_deployment, in_graph = arrivals.expect(place, replicas)
    key, started = _adapter(place), time.perf_counter()
    await bench_.kube.merge_patch(
        DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, key, {"spec": {"replicas": replicas}}, subresource="scale"
    )
    written = time.perf_counter()
    async with asyncio.timeout(WITHIN):
        return Sample(*((at - started) * 1000 for at in (written, await in_deployment, await in_graph)))


def _adapter(place: Place) -> ObjectKey:
    return ObjectKey(NAMESPACE, f"{place[0]}-{place[1].lower()}")


def _arrived(expected: tuple[int, asyncio.Future[float]] | None, replicas: int | None) -> None:
    if expected is not None and expected[0] == replicas and not expected[1].done():
        expected[1].set_result(time.perf_counter())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=200, help="adapters scaled at once")
    parser.add_argument("--samples", type=int, default=40, help="adapters scaled one at a time, before")
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--services", nargs="*", default=(), help="only these, such as watcher pod-builder scaler")
    options = parser.parse_args()
    print(asyncio.run(run(options.n, options.samples, options.bursts, options.services)))
