"""`make bench-models`: how long until an adapter is loaded on N workers that take 50 ms for each request.

The workers are pods of KWOK on a real control plane; a proxy in this process answers for them. `loaded_s` counts from
the creation of the DynamoModel until the last worker has it, `status_s` until the status reports it, `unloaded_s` from
its deletion until it is gone. Each worker gets four requests: list, load, list, metadata. With `--bad`, some workers hang.
"""

import argparse
import asyncio
import os
import time

from dynamo_shared.api.resources import DYNAMO_MODELS, PODS, SERVICES, ObjectKey
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import NotFound
from dynamo_shared.kube.reflector import ObjectChange, Reflector

from tests.integration.lora_workers import Farm, farm
from tests.integration.models import model, model_service, worker_pod

from .platform import NAMESPACE, WITHIN, bench, create, servers

#: KWOK's nodes take 250 pods each.
PODS_PER_NODE = 240
KEY = ObjectKey(NAMESPACE, "support")


async def run(count: int, delay: float, bad: int) -> str:
    """Measure, and return the line."""
    async with farm(delay) as workers, servers(scheduler=True, kwok_nodes=-(-count // PODS_PER_NODE)) as stage:
        os.environ["DYNAMO_PLATFORM__MODEL_DISCOVERY__PROXY"] = workers.url
        hosts = await _pods(stage.kube, count)
        for host in hosts[:bad]:
            workers[host].mode = "hang"
        async with bench(stage, "watcher", "model-discovery") as process:
            before = process.usage()
            started = time.perf_counter()
            observed = asyncio.create_task(_until_status(stage.kube, count - bad))
            await stage.kube.create(DYNAMO_MODELS, model(NAMESPACE))
            loaded = asyncio.create_task(_until_loaded(workers, count - bad))
            async with asyncio.timeout(WITHIN):
                loaded_s, status_s = await loaded - started, await observed - started
            used = process.usage().since(before)
            requests = sum(len(each.requests) for each in workers.workers.values())
            started = time.perf_counter()
            await stage.kube.delete(DYNAMO_MODELS, KEY)
            async with asyncio.timeout(WITHIN):
                await _until_gone(stage.kube)
            unloaded_s = time.perf_counter() - started
            left = sum(workers.loaded().values())
            return (
                f"loaded_s={loaded_s:.2f} status_s={status_s:.2f} unloaded_s={unloaded_s:.2f} workers={count} bad={bad} "
                f"delay_ms={delay * 1000:.0f} requests={requests} at_once={workers.most_at_once} left={left} "
                f"api_writes={used.writes:.0f} cpu_s={used.cpu_seconds:.1f} peak_rss_mib={process.peak_rss_mib():.0f}"
            )


async def _pods(kube: KubeClient, count: int) -> list[str]:
    """That many ready pods; their addresses."""
    await kube.create(SERVICES, model_service(NAMESPACE))
    await create(kube, (worker_pod(NAMESPACE, f"worker-{number:04}") for number in range(count)))
    async with asyncio.timeout(WITHIN):
        while True:
            pods = await kube.list(PODS, NAMESPACE)
            hosts = [address for pod in pods if (address := pod.get("status", {}).get("podIP"))]
            if len(hosts) == count:
                return hosts
            await asyncio.sleep(0.5)


async def _until_loaded(workers: Farm, count: int) -> float:
    while sum(workers.loaded().values()) < count:
        await asyncio.sleep(0.02)
    return time.perf_counter()


async def _until_status(kube: KubeClient, count: int) -> float:
    async for change in Reflector(kube, DYNAMO_MODELS, namespace=NAMESPACE).changes():
        if isinstance(change, ObjectChange) and change.obj.get("status", {}).get("readyEndpoints", 0) >= count:
            break
    return time.perf_counter()


async def _until_gone(kube: KubeClient) -> None:
    while True:
        try:
            await kube.get(DYNAMO_MODELS, KEY)
        except NotFound:
            return
        await asyncio.sleep(0.02)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=1000, help="workers")
    parser.add_argument("--delay", type=float, default=0.05, help="seconds that a worker takes for each request")
    parser.add_argument("--bad", type=int, default=0, help="workers that hang")
    options = parser.parse_args()
    print(asyncio.run(run(options.n, options.delay, options.bad)))
