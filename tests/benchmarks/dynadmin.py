"""`make bench-dynadmin`: the REST API on a real API server and NATS, the service as a process of its own.

- `list_*`: a page of all N graphs, one caller after the other.
- `stream_*`: S streams of the namespace are open; a graph is changed; from the write's answer until each stream has it.
- `deploy_*`: POST /deploy with `dryRun=server`.
- `estimate_*`: the first and the last answer of a streamed estimate: `warm` with worker processes that run already.
- `peak_rss_mib`: of the service, without the simulation's worker processes.

Goals: 30 and 100 ms for the list, 250 ms for p99 of streams, 60 ms for the dry run, 1 s for the first answer, 150 MiB.
"""

import argparse
import asyncio
import gc
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
from dynamo_devcluster import free_port
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.kube import KubeClient

from tests.integration.dynadmin import EVERYTHING, account

from .platform import NAMESPACE, WITHIN, bench, create, percentile, servers

INTENT = {"mode": "graph", "name": "qwen", "model": {"name": "Qwen/Qwen3-0.6B"}, "backend": "vllm"}
OBJECTIVE: dict[str, Any] = {
    "mode": "objective",
    "name": "qwen",
    "model": {"name": "Qwen/Qwen3-32B"},
    "backend": "vllm",
    "hardware": {"gpuSku": "h200_sxm", "totalGpus": 8, "gpusPerNode": 8},
    "workload": {"isl": 4000, "osl": 1000},
    "objective": {"ttftMs": 600, "itlMs": 50},
}


async def run(graphs: int, streams: int, rounds: int, *, estimates: bool) -> str:
    """Measure, and return the line."""
    port = free_port()
    # One user opens all streams, and sends more requests than a person would.
    limits = {"MAX_STREAMS_PER_USER": streams, "REQUESTS_PER_SECOND": 1_000_000, "BURST": 1_000_000}
    os.environ |= {f"DYNAMO_PLATFORM__DYNADMIN__{name}": str(value) for name, value in limits.items()}
    os.environ |= {"DYNAMO_PLATFORM__DYNADMIN__HOST": "127.0.0.1", "DYNAMO_PLATFORM__DYNADMIN__PORT": str(port)}
    async with servers(scheduler=False, kwok_nodes=1, controllers=False) as stage:
        token = await account(stage.kube, NAMESPACE, "bench", EVERYTHING)
        await create(stage.kube, (_graph(f"graph-{number:04}") for number in range(graphs)))
        async with bench(stage, "watcher") as _, bench(stage, "dynadmin") as process, _api(port, token) as api:
            lines = [
                await _lists(api, graphs, rounds),
                await _streams(api, stage.kube, streams, rounds),
                await _deploys(api, rounds),
            ]
            memory = f"peak_rss_mib={process.peak_rss_mib():.0f}"
            lines += await _estimates(api) if estimates else []
            return " ".join([*lines, memory, f"graphs={graphs} streams={streams}"])


@asynccontextmanager
async def _api(port: int, token: str) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(
        f"http://127.0.0.1:{port}/api/v1/namespaces/{NAMESPACE}/",
        headers={"Authorization": f"Bearer {token}"},
        connector=aiohttp.TCPConnector(limit=0),
    ) as session:
        yield session


def _graph(name: str) -> dict[str, Any]:
    components = [
        {"name": "Frontend", "type": "frontend", "replicas": 1},
        {"name": "Decode", "type": "decode", "replicas": 2},
    ]
    metadata = {"name": name, "namespace": NAMESPACE}
    spec = {"backendFramework": "vllm", "components": components}
    return {**DYNAMO_GRAPH_DEPLOYMENTS.type_meta, "metadata": metadata, "spec": spec}


async def _lists(api: aiohttp.ClientSession, graphs: int, rounds: int) -> str:
    times = []
    for _ in range(rounds * 10):
        started = time.perf_counter()
        async with api.get(f"deployments?limit={graphs}") as answer:
            content = await answer.read()
        times.append((time.perf_counter() - started) * 1000)
    assert len(json.loads(content)["items"]) == graphs
    return f"list_p50_ms={percentile(times, 0.5):.1f} list_p99_ms={percentile(times, 0.99):.1f}"


async def _streams(api: aiohttp.ClientSession, kube: KubeClient, count: int, rounds: int) -> str:
    """Streams wait for one change after another; the time of each is measured."""
    arrived: list[asyncio.Queue[tuple[str, float]]] = [asyncio.Queue() for _ in range(count)]
    synced = asyncio.Semaphore(0)
    here = await _position(api)

    async def read(queue: asyncio.Queue[tuple[str, float]]) -> None:
        timeout = aiohttp.ClientTimeout(total=None)
        async with api.get("deployments?watch=true", headers={"Last-Event-ID": here}, timeout=timeout) as answer:
            assert answer.status == 200, await answer.text()
            async for line in answer.content:
                if line == b"event: synced\n":
                    synced.release()
                elif line.startswith(b"data: ") and b'"bench-round"' in line:
                    stamp = line.partition(b'"bench-round":"')[2].partition(b'"')[0].decode()
                    queue.put_nowait((stamp, time.perf_counter()))

    async with AsyncExitStack() as stack:
        tasks = [asyncio.create_task(read(queue)) for queue in arrived]
        stack.callback(lambda: [task.cancel() for task in tasks])
        async with asyncio.timeout(WITHIN):
            for _ in range(count):
                await synced.acquire()
        times, last = [], []
        # Garbage collection in this process must not count as latency of the service.
        gc.collect()
        gc.disable()
        stack.callback(gc.enable)
        for number in range(rounds):
            stamp = f"r{number}"
            patch = {"metadata": {"labels": {"bench-round": stamp}}}
            await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(NAMESPACE, "graph-0000"), patch)
            written = time.perf_counter()
            async with asyncio.timeout(WITHIN):
                result = await asyncio.gather(*(_until(queue, stamp) for queue in arrived))
            times += [(each - written) * 1000 for each in result]
            last.append((max(result) - written) * 1000)
    return (
        f"stream_p50_ms={percentile(times, 0.5):.0f} stream_p99_ms={percentile(times, 0.99):.0f} "
        f"stream_all_p50_ms={percentile(last, 0.5):.0f}"
    )


async def _until(queue: asyncio.Queue[tuple[str, float]], stamp: str) -> float:
    while True:
        result, at = await queue.get()
        if result == stamp:
            return at


async def _position(api: aiohttp.ClientSession) -> str:
    async with api.get("deployments?limit=1") as answer:
        return str((await answer.json())["metadata"]["position"])


async def _deploys(api: aiohttp.ClientSession, rounds: int) -> str:
    times = []
    for _ in range(rounds * 5):
        started = time.perf_counter()
        async with api.post("deploy?dryRun=server", json=INTENT) as answer:
            assert answer.status == 200, await answer.text()
            await answer.read()
        times.append((time.perf_counter() - started) * 1000)
    return f"deploy_p50_ms={percentile(times, 0.5):.0f}"


async def _estimates(api: aiohttp.ClientSession) -> list[str]:
    """Cold, and warm with another objective; a cached estimate would be answered at once."""
    results = []
    for name, objective in (("cold", {"ttftMs": 600, "itlMs": 50}), ("warm", {"ttftMs": 500, "itlMs": 40})):
        started, first = time.perf_counter(), 0.0
        headers = {"Accept": "text/event-stream"}
        timeout = aiohttp.ClientTimeout(total=WITHIN)
        async with api.post(
            "estimate", json={**OBJECTIVE, "objective": objective}, headers=headers, timeout=timeout
        ) as answer:
            assert answer.status == 200, await answer.text()
            async for line in answer.content:
                if line == b"event: estimate\n":
                    first = first or time.perf_counter() - started
                elif line == b"event: end\n":
                    break
        results.append(
            f"estimate_{name}_first_s={first:.2f} estimate_{name}_last_s={time.perf_counter() - started:.1f}"
        )
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--no-estimates", action="store_false", dest="estimates", help="they take half a minute")
    given = parser.parse_args()
    print(asyncio.run(run(given.graphs, given.streams, given.rounds, estimates=given.estimates)))
