"""`make bench-bus`: how fast changes reach subscribers.

`event_p50_ms` and `event_p99_ms`: from sending a write to the API server to the change at a NATS subscriber, one write at
a time. `objects_per_s`: objects that exist before the watcher starts, from its first to its last message.
"""

import argparse
import asyncio
import time
from typing import Any

import nats
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import SERVICE_ACCOUNTS, ObjectKey
from dynamo_shared.kube import KubeClient
from nats.aio.msg import Msg

from .platform import NAMESPACE, WITHIN, bench, create, percentile, servers

#: Time until the first list is complete. Seconds.
SETTLE = 3.0
MARKED = {labels.APP_MANAGED_BY: "dynamo-operator"}


async def run(count: int, events: int) -> str:
    """Measure, and return the line."""
    async with servers(scheduler=False, kwok_nodes=0) as stage:
        await create(stage.kube, (_account(f"account-{number}") for number in range(count)))
        connection = await nats.connect(stage.nats_url)
        received: asyncio.Queue[tuple[float, str]] = asyncio.Queue()

        async def take(message: Msg) -> None:
            received.put_nowait((time.perf_counter(), (message.headers or {}).get("resourceVersion", "")))

        try:
            await connection.subscribe("dynamo.state.v1.*.serviceaccounts.>", cb=take)
            await connection.flush()
            async with bench(stage, "watcher"):
                seconds = await _rate(received, count)
                latencies = await _latencies(stage.kube, received, events)
        finally:
            await connection.close()
    return (
        f"event_p50_ms={percentile(latencies, 0.5) * 1000:.1f} event_p99_ms={percentile(latencies, 0.99) * 1000:.1f} "
        f"objects_per_s={count / seconds:.0f} objects={count} events={events}"
    )


async def _rate(received: asyncio.Queue[tuple[float, str]], count: int) -> float:
    """Seconds from the first object at the subscriber to the last of the first list."""
    async with asyncio.timeout(WITHIN):
        first, _ = await received.get()
        last = first
        for _ in range(count - 1):
            last, _ = await received.get()
    return last - first


async def _latencies(kube: KubeClient, received: asyncio.Queue[tuple[float, str]], events: int) -> list[float]:
    await asyncio.sleep(SETTLE)
    while not received.empty():
        received.get_nowait()
    latencies = []
    for number in range(events):
        patch = {"metadata": {"annotations": {"bench": str(number)}}}
        started = time.perf_counter()
        written = await kube.merge_patch(SERVICE_ACCOUNTS, ObjectKey(NAMESPACE, "account-0"), patch)
        async with asyncio.timeout(WITHIN):
            arrived, version = await received.get()
            while version != written["metadata"]["resourceVersion"]:
                arrived, version = await received.get()
        latencies.append(arrived - started)
    return latencies


def _account(name: str) -> dict[str, Any]:
    return {**SERVICE_ACCOUNTS.type_meta, "metadata": {"name": name, "namespace": NAMESPACE, "labels": MARKED}}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=5000, help="objects that exist before the watcher starts")
    parser.add_argument("--events", type=int, default=500, help="writes, one at a time")
    options = parser.parse_args()
    print(asyncio.run(run(options.n, options.events)))
