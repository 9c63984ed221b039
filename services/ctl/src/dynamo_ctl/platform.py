"""Running the platform in this process: its services alone, or with all that they need."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from dynamo_shared.api.crds import crd_manifests
from dynamo_shared.bus.streams import STATE
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.discovery import install_crds
from dynamo_shared.runtime import Service, Settings, running

from dynamo_ctl import progress, services
from dynamo_ctl.listening import until_stands
from dynamo_ctl.localcluster import ControlPlane, ControlPlaneOptions, Programs
from dynamo_ctl.running import RunningPlatform, announced, claim
from dynamo_ctl.servers import embedded
from dynamo_ctl.settings import with_cluster

if TYPE_CHECKING:
    from rich.console import Console

#: Under this name the reference installs them, too (operator behaviour, section 12).
DEFINITIONS_MANAGER = "dynamo-crd-apply"
LOOPBACK = "127.0.0.1"

log = structlog.get_logger("dynamo.ctl")


async def install_definitions(kubeconfig: Path | None = None, context: str | None = None) -> list[str]:
    """Install or update the resource definitions and wait until they are served; returns their names."""
    manifests = crd_manifests()
    async with await KubeClient.open(
        kubeconfig=kubeconfig, context=context, field_manager=DEFINITIONS_MANAGER
    ) as client:
        await install_crds(client, manifests)
    return [manifest["metadata"]["name"] for manifest in manifests]


async def serve(chosen: Sequence[Service], settings: Settings) -> None:
    """Run services until cancelled."""
    async with running(chosen, settings) as platform:
        names = [service.name for service in chosen]
        log.info("running", services=names, health_port=platform.health_port, metrics_port=platform.metrics_port)
        try:
            await asyncio.Event().wait()
        finally:
            log.info("stopping", services=names)


async def up(settings: Settings, folder: Path, console: Console, *, local: bool) -> None:
    """Run the whole platform until cancelled, with the servers that the settings do not name."""
    claim(folder)
    async with AsyncExitStack() as stack:
        with progress.showing(console) as steps:
            programs = Programs(steps)
            if local:
                plane = ControlPlane(
                    ControlPlaneOptions(directory=folder / "cluster", prepare=install_definitions), programs
                )
                steps.started("starting Kubernetes")
                begun = asyncio.get_running_loop().time()
                await stack.enter_async_context(plane)
                steps.finished("starting Kubernetes", asyncio.get_running_loop().time() - begun)
                settings = with_cluster(settings, plane.kubeconfig, None)
            settings = await stack.enter_async_context(embedded(settings, folder, programs))
        cluster = settings.platform.kubernetes
        if not local:
            await install_definitions(cluster.kubeconfig, cluster.context)
        platform = await stack.enter_async_context(running(services.make(), _on_this_machine(settings)))
        kubeconfig = str(cluster.kubeconfig or "")
        nats = settings.platform.nats.servers[0]
        note = RunningPlatform(os.getpid(), settings.platform.cluster_name, nats, kubeconfig, cluster.context or "")
        stack.enter_context(announced(folder, note))
        await platform.ready()
        # Ready is also a watcher that stands by until it is elected.
        await until_stands(platform.context.bus, STATE)
        console.print("[bold green]Dynamo Platform is up[/]; Ctrl-C stops it.")
        console.print(f"  cluster   {platform.context.kube.server}")
        console.print(f"  NATS      {nats}")
        console.print(f"  health    http://{LOOPBACK}:{platform.health_port}/readyz")
        console.print(f"  metrics   http://{LOOPBACK}:{platform.metrics_port}/metrics")
        if local:
            console.print(f"  export KUBECONFIG={kubeconfig}", soft_wrap=True)
        console.print("  next      kubectl apply -f examples/vllm-agg.yaml; dynamoctl get -w; dynamoctl events -f")
        await asyncio.Event().wait()


def _on_this_machine(settings: Settings) -> Settings:
    """Where the settings say nothing about ports: on loopback, and any free port where the usual one is taken."""
    if "server" in settings.model_fields_set:
        return settings
    server = settings.server
    parts = {
        name: part.model_copy(update={"bind_address": LOOPBACK, "port": _free_or_any(part.port)})
        for name, part in (("metrics", server.metrics), ("health_probe", server.health_probe))
    }
    return settings.model_copy(update={"server": server.model_copy(update=parts)})


def _free_or_any(port: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return 0
    return port
