"""The platform as a separate process, so that CPU time, memory and API writes are its alone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path

from dynamo_devcluster import ManagedProcess, free_port
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.programs import Programs
from dynamo_devcluster.servers import NatsServer
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import NAMESPACES, of
from dynamo_shared.kube import KubeClient

from tests.building.control_plane import prepared
from tests.building.services import configuration, service_process

#: Limit of each wait, on a busy machine, too. Seconds.
WITHIN = 300.0
TICKS = os.sysconf("SC_CLK_TCK")
NAMESPACE = "bench"
#: Objects that are created at once.
AT_ONCE = 64
USER = "dynamo-platform"


@dataclass(frozen=True, slots=True)
class Usage:
    """What the platform has used since it started."""

    cpu_seconds: float
    writes: float
    event_writes: float

    def since(self, before: Usage) -> Usage:
        """The difference to an earlier reading."""
        return Usage(
            self.cpu_seconds - before.cpu_seconds, self.writes - before.writes, self.event_writes - before.event_writes
        )


@dataclass(frozen=True, slots=True)
class Bench:
    """Objects for a benchmark."""

    kube: KubeClient
    nats_url: str
    process: ManagedProcess
    metrics_port: int

    def usage(self) -> Usage:
        """CPU seconds and API writes of the platform so far."""
        writes = events = 0.0
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        for line in re.finditer(r"^dynamo_platform_kube_requests_total\{(.*)\} ([0-9.e+]+)$", text, re.MULTILINE):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line[1]))
            if labels["method"] in {"POST", "PUT", "PATCH", "DELETE"}:
                writes += float(line[2])
                events += float(line[2]) if labels["resource"].startswith("events") else 0
        return Usage(self.cpu_seconds(), writes, events)

    def cpu_seconds(self) -> float:
        """CPU seconds of the platform so far; reading them costs it nothing."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def peak_rss_mib(self) -> float:
        """The platform's highest resident memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        match = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
        return int(match[1]) / 1024 if match else 0.0


@dataclass(frozen=True, slots=True)
class Stage:
    """Servers for the platform, which does not run yet."""

    kube: KubeClient
    nats_url: str
    kubeconfig: Path
    directory: Path


@contextlib.asynccontextmanager
async def servers(*, scheduler: bool, kwok_nodes: int, controllers: bool = True) -> AsyncIterator[Stage]:
    """A control plane with our CRDs and a namespace, and NATS; without `controllers` Deployments get no pods."""
    programs = Programs()
    options = await prepared(programs, controller_manager=controllers, scheduler=scheduler, kwok_nodes=kwok_nodes)
    async with contextlib.AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dynamo-bench-")))
        plane = await stack.enter_async_context(ControlPlane(options, programs))
        nats = await stack.enter_async_context(NatsServer(await programs.obtain("nats-server"), directory / "nats"))
        kube = await stack.enter_async_context(
            await KubeClient.open(kubeconfig=plane.kubeconfig, field_manager="dynamo-bench")
        )
        # The second port is for the webhooks' server.
        for name in (NAMESPACE, "dynamo-system"):
            await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        # Rights are not measured; the platform has its own user, as in an installation.
        yield Stage(kube, nats.url, plane.user_kubeconfig(USER, ("system:masters",)), directory)


async def create(kube: KubeClient, objects: Iterable[KubeObject]) -> None:
    """Create objects before the platform starts, many at once."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(obj: KubeObject) -> None:
        async with gate:
            await kube.create(of(obj), obj)

    await asyncio.gather(*map(one, objects))


@contextlib.asynccontextmanager
async def bench(stage: Stage, *services: str, wait: bool = True, webhooks: int = 0) -> AsyncIterator[Bench]:
    """The platform with the named services in one process; with `wait`, it is ready for work.

    `webhooks` is the port at which the API server calls admission, if that is one of the services. Without names all
    services run, including admission.
    """
    webhooks = webhooks or (0 if services else free_port())
    health, metrics = free_port(), free_port()
    called = {"admission": {"url": f"https://127.0.0.1:{webhooks}", "operators": [USER]}} if webhooks else {}
    settings = {
        "kubernetes": {"kubeconfig": str(stage.kubeconfig)},
        "nats": {"servers": [stage.nats_url]},
        "dynadmin": {"port": free_port()},
        **called,
    }
    configured = configuration(health, metrics, webhooks, settings, rbac={"plannerClusterRoleName": "dynamo-planner"})
    process = service_process(
        "platform",
        services or ("all",),
        stage.directory / "config.yaml",
        configured,
        "/readyz" if wait else "",
        ready_within=WITHIN,
        stop_within=30.0,
    )
    await process.start()
    try:
        yield Bench(stage.kube, stage.nats_url, process, metrics)
    finally:
        await process.stop()


def percentile(values: list[float], share: float) -> float:
    """Nearest-rank percentile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
