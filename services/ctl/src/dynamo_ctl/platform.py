"""Running the platform in this process: its services alone, or with all that they need."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from dynamo_shared.aio import Backoff
from dynamo_shared.api.crds import crd_manifests
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import CUSTOM_RESOURCE_DEFINITIONS, ObjectKey
from dynamo_shared.bus.streams import STATE
from dynamo_shared.kube import KubeClient, NotFound
from dynamo_shared.kube.discovery import install_crds
from dynamo_shared.kube.errors import Unavailable
from dynamo_shared.runtime import Settings, running

from dynamo_ctl import progress, services, webhooks
from dynamo_ctl.addresses import where_it_answers
from dynamo_ctl.event_stream import until_stands
from dynamo_ctl.localcluster import ControlPlane, ControlPlaneOptions, Programs, free_port
from dynamo_ctl.localcluster.process import READY_WITHIN
from dynamo_ctl.running import RunningPlatform, announced, claim
from dynamo_ctl.servers import embedded, nats_credentials_of
from dynamo_ctl.settings import with_cluster, with_platform

if TYPE_CHECKING:
    from rich.console import Console


#: Under this name the reference installs them, too (operator behaviour, section 12).
DEFINITIONS_MANAGER = "dynamo-crd-apply"
#: Under this name the admission service says who converts (dynamo_admission.app).
CONVERSION_MANAGER = "dynamo-admission"
LOOPBACK = webhooks.LOOPBACK
#: Between two attempts at an API server that does not answer yet. Seconds.
FIRST_RETRY, LAST_RETRY = 0.5, 5.0

log = structlog.get_logger("dynamo.ctl")


async def install_definitions(
    kubeconfig: Path | None = None, context: str | None = None, *, wait: float = 0.0
) -> list[str]:
    """Install or update the resource definitions and wait until they are served; returns their names.

    An API server that does not answer yet is waited for as many seconds as `wait` says; then, Unavailable is raised.
    """
    backoff, deadline = Backoff(FIRST_RETRY, LAST_RETRY), time.monotonic() + wait
    while True:
        try:
            return await _install(kubeconfig, context)
        except Unavailable:
            if time.monotonic() >= deadline:
                raise
            await asyncio.sleep(backoff.next())


async def _install(kubeconfig: Path | None, context: str | None) -> list[str]:
    manifests = crd_manifests()
    async with await KubeClient.open(
        kubeconfig=kubeconfig, context=context, field_manager=DEFINITIONS_MANAGER
    ) as client:
        await install_crds(client, [await _with_its_converter(client, manifest) for manifest in manifests])
    return [manifest["metadata"]["name"] for manifest in manifests]


async def _with_its_converter(client: KubeClient, manifest: KubeObject) -> KubeObject:
    """The definition without its stand-in for a converter, where the admission service has written its own address."""
    if "conversion" not in manifest["spec"]:
        return manifest
    try:
        definition = await client.get(CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", manifest["metadata"]["name"]))
    except NotFound:
        return manifest
    for entry in definition["metadata"].get("managedFields") or ():
        if entry["manager"] == CONVERSION_MANAGER and "f:conversion" in entry.get("fieldsV1", {}).get("f:spec", {}):
            spec = {name: value for name, value in manifest["spec"].items() if name != "conversion"}
            return {**manifest, "spec": spec}
    return manifest


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
        client = await stack.enter_async_context(
            await KubeClient.open(
                kubeconfig=cluster.kubeconfig, context=cluster.context, field_manager=DEFINITIONS_MANAGER
            )
        )
        is_local_webhook = not webhooks.named(settings) and webhooks.is_local(client.server)
        if is_local_webhook:
            settings = webhooks.on_loopback(settings, _free_or_any(settings.server.webhook.port) or free_port())
            await webhooks.make_namespace(client, settings)
            if not local:
                # After the services have ended, which would set them right again.
                stack.push_async_callback(webhooks.withdraw, client)
        without = () if webhooks.named(settings) else (services.ADMISSION,)
        settings = _on_this_machine(settings)
        platform = await stack.enter_async_context(running(services.make(without=without), settings))
        kubeconfig = str(cluster.kubeconfig or "")
        nats = settings.platform.nats.servers[0]
        note = RunningPlatform(
            os.getpid(),
            settings.platform.cluster_name,
            nats,
            kubeconfig,
            cluster.context or "",
            nats_credentials_of(settings, folder),
        )
        stack.enter_context(announced(folder, note))
        await platform.ready(READY_WITHIN)
        if is_local_webhook:
            await webhooks.try_out(client)
        # Ready is also a watcher that stands by until it is elected.
        await until_stands(platform.context.bus, STATE)
        console.print("[bold green]Dynamo Platform is up[/]; Ctrl-C stops it.")
        ports = platform.health_port, platform.metrics_port
        for name, address in where_it_answers(settings, platform.context.kube.server, *ports):
            console.print(f"  {name:<9} {address}", soft_wrap=True)
        if local:
            console.print(f"  export KUBECONFIG={kubeconfig}", soft_wrap=True)
        console.print("  next      kubectl apply -f examples/vllm-agg.yaml; dynamoctl get -w; dynamoctl events -f")
        await asyncio.Event().wait()


def _on_this_machine(settings: Settings) -> Settings:
    """Where the settings say nothing about ports: on loopback, and any free port where the usual one is taken."""
    if "dynadmin" not in settings.platform.model_fields_set:
        api = settings.platform.dynadmin
        local = api.model_copy(update={"host": LOOPBACK, "port": _free_or_any(api.port) or free_port()})
        settings = with_platform(settings, dynadmin=local)
    if settings.server.model_fields_set & {"metrics", "health_probe"}:
        return settings
    server = settings.server
    parts = {
        name: part.model_copy(update={"bind_address": LOOPBACK, "port": _free_or_any(part.port), **more})
        # What listens on loopback is read by who may start this process.
        for name, part, more in (
            ("metrics", server.metrics, {"secure": False}),
            ("health_probe", server.health_probe, {}),
        )
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
