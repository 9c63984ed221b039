"""`make bench-reconcile N=100`: how fast graphs become Deployments, and what it costs.

Without scheduler and nodes, so that only the platform and the API server are measured. `p50` and `p99` are of graphs
created one at a time; `dgd_per_s` is of N created at once, from the first request to the last Deployment.
"""

import argparse
import asyncio
import time
from collections import defaultdict
from collections.abc import Sequence

from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.kube.reflector import ObjectChange, Reflector

from tests.building.tasks import in_background

from .graphs import COMPONENTS, graph
from .platform import NAMESPACE, WITHIN, Bench, bench, percentile, servers

#: The platform is at rest when it used less than this share of a core for this long. Seconds.
REST, REST_SECONDS = 0.01, 5.0


class Arrivals:
    """Records when the last of a graph's Deployments was observed."""

    def __init__(self) -> None:
        self._observed: dict[str, set[str]] = defaultdict(set)
        self._complete: dict[str, asyncio.Future[float]] = {}

    def expect(self, name: str) -> asyncio.Future[float]:
        """Resolves to the time at which all components of a graph have their Deployment."""
        return self._complete.setdefault(name, asyncio.get_running_loop().create_future())

    async def watch(self, bench_: Bench) -> None:
        """Follow the Deployments until cancelled."""
        async for change in Reflector(bench_.kube, DEPLOYMENTS, namespace=NAMESPACE).changes():
            if not isinstance(change, ObjectChange):
                continue
            metadata = change.obj["metadata"]
            result = self._observed[metadata["labels"][labels.GRAPH_DEPLOYMENT_NAME]]
            result.add(metadata["name"])
            complete = self._complete.get(metadata["labels"][labels.GRAPH_DEPLOYMENT_NAME])
            if complete is not None and not complete.done() and len(result) >= len(COMPONENTS):
                complete.set_result(time.perf_counter())


async def run(count: int, alone: int, services: Sequence[str]) -> str:
    """Measure, and return the line. Without names all services run, including admission's webhooks."""
    async with servers(scheduler=False, kwok_nodes=0) as stage, bench(stage, *services) as bench_:
        arrivals = Arrivals()
        async with in_background(arrivals.watch(bench_)):
            await _create(bench_, arrivals, "warm-up")
            idle = [await _create(bench_, arrivals, f"idle-{number}") for number in range(alone)]
            for number in range(alone):
                await bench_.kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(NAMESPACE, f"idle-{number}"))
            await _rest(bench_)
            before, started = bench_.usage(), time.perf_counter()
            await asyncio.gather(*(_create(bench_, arrivals, f"burst-{number}") for number in range(count)))
            seconds = time.perf_counter() - started
            await _rest(bench_)
            used = bench_.usage().since(before)
        return (
            f"dgd_per_s={count / seconds:.2f} p50_create_to_children_s={percentile(idle, 0.5):.3f} "
            f"p99_create_to_children_s={percentile(idle, 0.99):.3f} api_writes_per_dgd={used.writes / count:.1f} "
            f"events_per_dgd={used.event_writes / count:.1f} cpu_s_per_dgd={used.cpu_seconds / count:.4f} "
            f"rss_mib={bench_.peak_rss_mib():.0f} n={count}"
        )


async def _rest(bench_: Bench) -> None:
    """Wait until all consequences are over: status, Events, pods, and objects that are deleted with their owner."""
    async with asyncio.timeout(WITHIN):
        used = bench_.cpu_seconds()
        while True:
            await asyncio.sleep(REST_SECONDS)
            before, used = used, bench_.cpu_seconds()
            if used - before < REST * REST_SECONDS:
                return


async def _create(bench_: Bench, arrivals: Arrivals, name: str) -> float:
    complete, started = arrivals.expect(name), time.perf_counter()
    await bench_.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(name, NAMESPACE))
    return await asyncio.wait_for(complete, WITHIN) - started


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=100, help="graphs created at once")
    parser.add_argument("--alone", type=int, default=30, help="graphs created one at a time, before")
    parser.add_argument("--services", nargs="*", default=(), help="only these, such as watcher pod-builder")
    options = parser.parse_args()
    print(asyncio.run(run(options.n, options.alone, options.services)))
