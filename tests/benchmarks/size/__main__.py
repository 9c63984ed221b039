"""`make bench-size N=1000`: the platform, two replicas of each service, in a cluster of N graphs of three components.

- `children_s`: from the first request until all graphs have all Deployments; `available_s`: until KWOK runs all pods.
- `react_*`: from the answer to a change of one graph until its Deployment has it, and the same before there were others.
- `memory_mib`, `kib_a_graph`: of all services, at rest; the second without what the platform takes with one graph.
- `cores_at_rest`: processor time of all services at rest, a second.
- `NAME_s`, `NAME_writes`: both replicas of a service are stopped and started: until both are ready, and how many objects
  all services wrote until ten seconds after that; Leases and Events apart, as `NAME_renewals`. `NAME_react_s`: a change
  after these.
- `failover_s`: the watcher that leads is killed: until a change is reacted to. `relist_s`: the API server is killed and
  started: the same, from its start.
- `ended_with`: where the machine's memory or the time ends first, how many graphs have all Deployments then. Nothing more is
  measured.
- `load`: processes that run or wait, as the system counts them, before and after.

What each process uses, and the figures as they come, go to standard error.

Goals: react_p99 below twice the empty platform's; 0.1 MiB a graph; no write where nothing changed.
"""

import argparse
import asyncio
import os
import sys
import time
from contextlib import AsyncExitStack

from dynamo_devcluster import NodeShape
from dynamo_shared.kube import KubeClient

from tests.benchmarks.graphs import COMPONENTS
from tests.building.tasks import in_background
from tests.stage.balancer import balanced
from tests.stage.cluster import Stage, StageOptions, stage, until_ready

from .graphs import Deployments, Probe, create, followed
from .used import available_mib, cpu_seconds, load, nats_storage_mib, renewals, used, writes

REPLICAS, CHANGES, AT_REST, AFTER = 2, 200, 20.0, 10.0
#: Services are at rest when, for this many seconds, they wrote nothing and together used less than this share of a
#: core. After the last limit, the measurement goes on anyway.
RESTING, REST, REST_WITHIN = 0.2, 15.0, 300.0
#: The version that all parts of Kubernetes emulate: that of API_SERVER.
EMULATED = "--emulated-version=1.33"
#: With their default of 20 requests a second, Kubernetes' controllers would be measured.
BRISK = (
    EMULATED,
    "--kube-api-qps=1000",
    "--kube-api-burst=2000",
    "--concurrent-deployment-syncs=20",
    "--concurrent-replicaset-syncs=20",
)
SCHEDULER = (EMULATED, "--kube-api-qps=1000", "--kube-api-burst=2000")
#: From 1.34 on Kubernetes counts all Service addresses for each new one, under one lock: with 4,000 Services it creates
#: a quarter as many a second. In 1.33 mode it keeps them in a bitmap, as before.
API_SERVER = (
    "--max-requests-inflight=1600",
    "--max-mutating-requests-inflight=800",
    "--event-ttl=5m",
    EMULATED,
    "--feature-gates=MultiCIDRServiceAllocator=false",
)
PODS_A_NODE = 2500
#: Graphs created concurrently.
AT_ONCE = 1000
#: Seconds between two lines of progress.
PROGRESS = 60.0
#: MiB that the machine must have left, before the kernel kills processes of its choice.
LEAST_AVAILABLE = 1500.0
#: Up to this number of graphs the API server has the first memory limit, above it the second.
LARGE, LIMITS = 3000, ("6GiB", "12GiB")
#: GOMEMLIMIT of NATS as the chart sets it: nine tenths of 1 GiB.
NATS_LIMIT = "966367641"
RESTARTED = ("watcher", "pod-builder", "scaler", "model-discovery", "profiler", "planner", "admission")


class EndedError(Exception):
    """The machine has no capacity left."""


async def run(count: int, within: float) -> str:
    """Measure, and return the line."""
    # Memory limits at which the Go servers would collect garbage all the time.
    os.environ.setdefault("GOMEMLIMIT", LIMITS[count > LARGE])
    nodes = max(2, -(-count * len(COMPONENTS) // PODS_A_NODE) + 1)
    plane = {
        "kwok_nodes": nodes,
        "node_shape": NodeShape(cpu="100000", memory="900000Gi", pods=PODS_A_NODE),
        "controller_manager_arguments": BRISK,
        "scheduler_arguments": SCHEDULER,
        "api_server_arguments": API_SERVER,
    }
    parts = [f"n={count}"]

    def show(figures: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {figures}", file=sys.stderr, flush=True)
        parts.append(figures)

    before = load()
    async with AsyncExitStack() as stack:
        # Replicas of admission share one address here: two would compete for it.
        balancer = await stack.enter_async_context(balanced())
        options = StageOptions(
            replicas=REPLICAS,
            plane=plane,
            nats={"memory_limit": NATS_LIMIT},
            platform={"admission": {"url": balancer.url}},
            starting=balancer.take,
        )
        up = await stack.enter_async_context(stage(options))
        kube = await stack.enter_async_context(
            await KubeClient.open(kubeconfig=up.plane.kubeconfig, field_manager="dynamo-bench")
        )
        deployments = await stack.enter_async_context(followed(kube))
        probe = Probe(up.admin, deployments)
        await probe.create()
        await probe.reacts(CHANGES // 10)
        await _settled(up)
        show("empty_react_p50_s={:.3f} empty_react_p99_s={:.3f}".format(*await probe.reacts(CHANGES)))
        await _settled(up)
        empty = memory(up)
        _report(up, "before")
        try:
            show(await _grow(up, deployments, count, within))
        except EndedError as end:
            _report(up, "where it ended")
            return " ".join([*parts, str(end)])
        await _settled(up)
        _report(up, "with all graphs")
        show("react_p50_s={:.3f} react_p99_s={:.3f}".format(*await probe.reacts(CHANGES)))
        await _settled(up)
        show(await _at_rest(up, empty, count))
        for name in RESTARTED:
            show(await _restarted(up, probe, name))
        show(await _failover(up, probe))
        show(await _relist(up, probe))
        show(f"load={before:.1f},{load():.1f}")
        return " ".join(parts)


def memory(up: Stage) -> float:
    """MiB that all services have resident."""
    return sum(each.resident_mib() for each in up.services)


def _report(up: Stage, when: str) -> None:
    words = ", ".join(
        f"{name} {each.mib:.0f} (at most {each.highest:.0f}) MiB {each.cpu:.0f} s" for name, each in used(up).items()
    )
    print(f"{when}: {words}; load {load():.1f}", file=sys.stderr, flush=True)


async def _grow(up: Stage, deployments: Deployments, count: int, within: float) -> str:
    def ends() -> bool:
        return deployments.complete >= count or available_mib() < LEAST_AVAILABLE

    started = time.perf_counter()
    async with in_background(_progress(up, deployments, count)):
        for first in range(0, count, AT_ONCE):
            if available_mib() >= LEAST_AVAILABLE:
                await create(up.admin, range(first, min(first + AT_ONCE, count)))
        sent = time.perf_counter() - started
        await deployments.until(ends, max(0.0, within - sent))
    children = time.perf_counter() - started
    if deployments.complete < count:
        left = f"ended_after_s={children:.0f} ended_with_available_mib={available_mib():.0f}"
        raise EndedError(f"sent_s={sent:.0f} ended_with={deployments.complete} {left}")
    pods = await deployments.until(lambda: deployments.available >= count * len(COMPONENTS), within)
    took = f"{time.perf_counter() - started:.0f}" if pods else f"none:{deployments.available}"
    return f"sent_s={sent:.0f} children_s={children:.0f} graphs_per_s={count / children:.1f} available_s={took}"


async def _progress(up: Stage, deployments: Deployments, count: int) -> None:
    """Print progress until cancelled: a large run takes an hour and more."""
    while True:
        await asyncio.sleep(PROGRESS)
        server = used(up)[up.plane.api_server.name]
        print(
            f"{time.strftime('%H:%M:%S')} complete: {deployments.complete} of {count}, "
            f"kube-apiserver {server.mib:.0f} MiB {server.cpu:.0f} s, all services {memory(up):.0f} MiB",
            file=sys.stderr,
            flush=True,
        )


async def _settled(up: Stage) -> None:
    """Return when the services are at rest."""
    began = time.monotonic()
    while True:
        wrote = writes(up.services).total()
        cores = await _cores(up, REST)
        more = writes(up.services).total() - wrote
        if not more and cores < RESTING:
            return
        if time.monotonic() - began > REST_WITHIN:
            print(f"not at rest after {REST_WITHIN:.0f} s: {more} writes, {cores:.2f} cores", file=sys.stderr)
            return


async def _at_rest(up: Stage, empty: float, count: int) -> str:
    cores = await _cores(up, AT_REST)
    total = memory(up)
    each_service = " ".join(f"{each.id}_mib={each.resident_mib():.0f}" for each in up.services)
    return (
        f"memory_mib={total:.0f} kib_a_graph={(total - empty) * 1024 / count:.0f} {each_service} "
        f"cores_at_rest={cores:.2f} nats_mib={await nats_storage_mib(up):.0f}"
    )


async def _cores(up: Stage, seconds: float) -> float:
    """Processor time of all services in the next seconds, a second."""

    def cpu() -> float:
        return sum(cpu_seconds(each.process.pid) for each in up.services if each.process.pid)

    before = cpu()
    await asyncio.sleep(seconds)
    return (cpu() - before) / seconds


async def _restarted(up: Stage, probe: Probe, name: str) -> str:
    replicas = up.named(name)
    others = [each for each in up.services if each not in replicas]
    await asyncio.gather(*(each.process.stop() for each in replicas))
    before, renewed = writes(others), renewals(others)
    started = time.perf_counter()
    await asyncio.gather(*(each.process.start() for each in replicas))
    await until_ready(replicas, 300)
    ready = time.perf_counter() - started
    await asyncio.sleep(AFTER)
    written, renewed = writes(up.services) - before, renewals(up.services) - renewed
    for what, times in written.most_common(5):
        print(f"after the restart of {name}: {times} x {what}", file=sys.stderr)
    reacted = await probe.react()
    # Consequences of the change must not count for the next restart.
    await _settled(up)
    return (
        f"{name}_s={ready:.1f} {name}_writes={written.total()} {name}_renewals={renewed.total()} "
        f"{name}_react_s={reacted:.2f}"
    )


async def _failover(up: Stage, probe: Probe) -> str:
    leader = max(up.named("watcher"), key=lambda each: cpu_seconds(each.process.pid or 0))
    started = time.perf_counter()
    await leader.process.kill()
    await probe.react()
    took = time.perf_counter() - started
    await leader.process.start()
    await until_ready(up.services, 300)
    return f"failover_s={took:.1f}"


async def _relist(up: Stage, probe: Probe) -> str:
    await up.plane.api_server.kill()
    await up.plane.api_server.start()
    started = time.perf_counter()
    await probe.react()
    return f"relist_s={time.perf_counter() - started:.1f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.size", description=__doc__)
    parser.add_argument("-n", type=int, default=1000, help="graphs")
    parser.add_argument("--within", type=float, default=7200.0, help="seconds for all children, and for all pods")
    options = parser.parse_args()
    print(asyncio.run(run(options.n, options.within)))
