"""`make bench-ready`: seconds from creating a graph to `successful`, with scheduler and KWOK nodes, one graph at a time."""

import argparse
import asyncio
import time

from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, PODS, ObjectKey
from dynamo_shared.kube.reflector import ObjectChange, Reflector

from tests.building.tasks import in_background

from .graphs import graph
from .platform import NAMESPACE, WITHIN, Bench, bench, percentile, servers


async def run(count: int) -> str:
    """Measure, and return the line."""
    async with servers(scheduler=True, kwok_nodes=2) as stage, bench(stage) as bench_:
        ready: dict[str, asyncio.Future[float]] = {}
        async with in_background(_watch(bench_, ready)):
            await _until_ready(bench_, ready, "warm-up")
            samples = [await _until_ready(bench_, ready, f"sample-{number}") for number in range(count)]
        return f"p50_create_to_successful_s={percentile(samples, 0.5):.2f} max_s={max(samples):.2f} n={count}"


async def _watch(bench_: Bench, ready: dict[str, asyncio.Future[float]]) -> None:
    async for change in Reflector(bench_.kube, DYNAMO_GRAPH_DEPLOYMENTS, namespace=NAMESPACE).changes():
        if isinstance(change, ObjectChange) and change.obj.get("status", {}).get("state") == "successful":
            waiting = ready.get(change.obj["metadata"]["name"])
            if waiting is not None and not waiting.done():
                waiting.set_result(time.perf_counter())


async def _until_ready(bench_: Bench, ready: dict[str, asyncio.Future[float]], name: str) -> float:
    ready[name] = asyncio.get_running_loop().create_future()
    started = time.perf_counter()
    await bench_.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(name, NAMESPACE))
    seconds = await asyncio.wait_for(ready[name], WITHIN) - started
    await bench_.kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(NAMESPACE, name))
    # The next graph needs its GPUs. Without this, the benchmark would measure the controller-manager's garbage
    # collector, which discovers new kinds only every 30 seconds.
    while await bench_.kube.list(PODS, NAMESPACE):
        await asyncio.sleep(0.2)
    return seconds


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=20, help="graphs, one at a time")
    print(asyncio.run(run(parser.parse_args().n)))
