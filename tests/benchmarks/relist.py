"""`make bench-relist N=3000`: how soon changes are published while a new watcher still lists everything.

The API server and STATE have the objects of N graphs, ten each. A watcher starts, and one graph is changed again and
again. Seconds count from the watcher's start. `first_s`: STATE has the first of these changes. `all_s`: STATE has the
markers of all resources with objects. `worst_s`: the longest latency of a change in between. `cpu_s`: the watcher's
processor time until then. `cores_at_rest`: its processor time a second after that.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import nats
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    ObjectKey,
)
from dynamo_shared.kube import KubeClient
from dynamo_shared.wire.subjects import synced_subject
from nats.aio.msg import Msg

from tests.building.tasks import in_background

from .graphs import IMAGE, graph
from .platform import WITHIN, Bench, Stage, bench, create, servers

A_NAMESPACE, CLUSTER = 100, "local"
FILLED = (DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS, DEPLOYMENTS, PODS)
PROBED = ObjectKey("relist-000", "graph-00000")
#: Seconds between two changes.
PAUSE = 0.05
#: Text fragments of a pod template: a rendered one has some 4 KB.
VARIABLES = 40


class State:
    """What STATE has of the probed graph, and which resources are complete."""

    def __init__(self) -> None:
        self.versions: dict[str, float] = {}
        self.complete: dict[str, float] = {}
        self.changed = asyncio.Event()

    async def take(self, message: Msg) -> None:
        """A message of STATE."""
        now, headers = time.perf_counter(), message.headers or {}
        if headers.get("change") == "synced":
            self.complete[message.subject] = now
        else:
            self.versions.setdefault(headers.get("resourceVersion", ""), now)
        self.changed.set()


async def run(count: int, rest: float) -> str:
    """Measure, and return the line."""
    async with servers(scheduler=False, kwok_nodes=0, controllers=False) as stage:
        started = time.perf_counter()
        await _fill(stage.kube, count)
        print(f"filled in {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
        async with _listening(stage) as state, bench(stage, "watcher"):
            await _complete(state)
        async with _listening(stage) as state:
            started = time.perf_counter()
            async with bench(stage, "watcher", wait=False) as watcher:
                made: list[tuple[str, float]] = []
                async with in_background(_change(stage.kube, made)):
                    await _complete(state)
                    cpu = watcher.cpu_seconds()
                figures = _figures(made, state, started, max(state.complete.values()))
                cores = await _at_rest(watcher, rest)
    return f"{figures} cpu_s={cpu:.1f} cores_at_rest={cores:.3f} objects={10 * count}"


async def _change(kube: KubeClient, made: list[tuple[str, float]]) -> None:
    """Change the graph until cancelled; `made` gets the version of each change and the time of the answer."""
    number = 0
    while True:
        number += 1
        patch = {"metadata": {"annotations": {"bench": str(number)}}}
        answer = await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, PROBED, patch)
        made.append((answer["metadata"]["resourceVersion"], time.perf_counter()))
        await asyncio.sleep(PAUSE)


def _figures(made: list[tuple[str, float]], state: State, started: float, complete: float) -> str:
    """A change has arrived with its own version or a later one: of several pending ones only the last is published."""
    there = sorted((int(version), at) for version, at in state.versions.items())
    arrived = [(at, next((then for number, then in there if number >= int(version)), None)) for version, at in made]
    first = min(then for _, then in arrived if then is not None)
    meanwhile = [then - at for at, then in arrived if then is not None and first < at < complete]
    worst = max(meanwhile, default=0.0)
    return f"first_s={first - started:.2f} all_s={complete - started:.2f} worst_s={worst:.2f} changes={len(meanwhile)}"


async def _at_rest(watcher: Bench, seconds: float) -> float:
    before = total = watcher.cpu_seconds()
    for _ in range(int(seconds // 5)):
        await asyncio.sleep(5)
        now = watcher.cpu_seconds()
        print(f"{(now - before) / 5:.3f}", end=" ", file=sys.stderr, flush=True)
        before = now
    return (before - total) / seconds if seconds else 0.0


async def _complete(state: State) -> None:
    """Wait for the markers of the resources that have objects."""
    marked = {synced_subject(CLUSTER, each.id) for each in FILLED}
    async with asyncio.timeout(WITHIN):
        while not marked <= state.complete.keys():
            state.changed.clear()
            await state.changed.wait()


@asynccontextmanager
async def _listening(stage: Stage) -> AsyncIterator[State]:
    connection, state = await nats.connect(stage.nats_url), State()
    try:
        for subject in ("dynamo.state.v1.*.*._synced", f"dynamo.state.v1.*.*.{PROBED.namespace}.{PROBED.name}"):
            await connection.subscribe(subject, cb=state.take)
        await connection.flush()
        yield state
    finally:
        await connection.close()


async def _fill(kube: KubeClient, count: int) -> None:
    for number in range(-(-count // A_NAMESPACE)):
        name = f"relist-{number:03}"
        await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        account = {**SERVICE_ACCOUNTS.type_meta, "metadata": {"name": "default", "namespace": name}}
        await kube.create(SERVICE_ACCOUNTS, account)
        numbers = range(number * A_NAMESPACE, min(count, (number + 1) * A_NAMESPACE))
        await create(kube, (obj for each in numbers for obj in _objects(f"graph-{each:05}", name)))


def _objects(name: str, namespace: str) -> list[KubeObject]:
    desired = graph(name, namespace)
    return [desired, *(obj for each in desired["spec"]["components"] for obj in _component(name, namespace, each))]


def _component(name: str, namespace: str, spec: dict[str, Any]) -> list[KubeObject]:
    part = f"{name}-{spec['name'].lower()}"
    marked = {labels.COMPONENT: spec["name"], labels.GRAPH_DEPLOYMENT_NAME: name}
    metadata = {"name": part, "namespace": namespace, "labels": marked}
    env = [{"name": f"VARIABLE_{number}", "value": f"{part} {number} {'x' * 40}"} for number in range(VARIABLES)]
    pod = {"containers": [{"name": "main", "image": IMAGE, "env": env}]}
    template = {"metadata": {"labels": marked}, "spec": pod}
    return [
        {**DYNAMO_COMPONENT_DEPLOYMENTS.type_meta, "metadata": metadata, "spec": spec},
        {
            **DEPLOYMENTS.type_meta,
            "metadata": metadata,
            "spec": {"selector": {"matchLabels": marked}, "template": template},
        },
        {**PODS.type_meta, "metadata": metadata, "spec": pod},
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=3000, help="graphs")
    parser.add_argument("--rest", type=float, default=0.0, help="seconds for `cores_at_rest`")
    options = parser.parse_args()
    print(asyncio.run(run(options.n, options.rest)))
