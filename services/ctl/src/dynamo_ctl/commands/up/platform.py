"""Runs the platform in this process, with all that it needs."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from dynamo_devcluster import ControlPlane, ControlPlaneOptions, Programs, free_port
from dynamo_devcluster.ports import is_free
from dynamo_devcluster.process import READY_WITHIN
from dynamo_devcluster.progress import step
from dynamo_shared.bus.streams import STATE
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import Settings, running

from dynamo_ctl import services, webhooks
from dynamo_ctl.aggregated_roles import give_roles
from dynamo_ctl.commands.crds.definitions import DEFINITIONS_MANAGER, install_definitions
from dynamo_ctl.commands.up import progress
from dynamo_ctl.commands.up.addresses import addresses_of
from dynamo_ctl.commands.up.servers import embedded, running_here, supervised_servers
from dynamo_ctl.nats_targets import wait_for_stream
from dynamo_ctl.output import own_command
from dynamo_ctl.page_account import TOKEN, page_token
from dynamo_ctl.running_platform import announced, claimed
from dynamo_ctl.settings import with_cluster, with_platform

if TYPE_CHECKING:
    from rich.console import Console


#: The namespace in which the page's token of a local cluster may work.
DEFAULT_NAMESPACE = "default"


async def up(settings: Settings, folder: Path, console: Console, *, local: bool) -> None:
    """Run the whole platform until cancelled, with local servers in place of servers that the settings do not name."""
    async with AsyncExitStack() as stack:
        stack.enter_context(claimed(folder))
        with progress.showing(console) as steps:
            programs = Programs(steps)
            if local:
                plane = ControlPlane(
                    ControlPlaneOptions(directory=folder / "cluster", prepare=install_definitions), programs
                )
                with step(steps, "starting Kubernetes"):
                    await stack.enter_async_context(plane)
                await stack.enter_async_context(supervised_servers(*plane.parts()))
                settings = with_cluster(settings, plane.kubeconfig, None)
            cluster = settings.platform.kubernetes
            opened = KubeClient.open(
                kubeconfig=cluster.kubeconfig, context=cluster.context, field_manager=DEFINITIONS_MANAGER
            )
            client = await stack.enter_async_context(await opened)
            if not local:
                # Before servers are obtained, which may take minutes: without a cluster they are useless.
                await install_definitions(cluster.kubeconfig, cluster.context)
            settings = await stack.enter_async_context(embedded(settings, folder, programs))
        if local:
            await give_roles(client)
            # Before other commands find the platform, which use the token.
            await page_token(client, DEFAULT_NAMESPACE, folder)
        is_local_webhook = not webhooks.named(settings) and webhooks.is_local(client.server)
        if is_local_webhook:
            settings = webhooks.on_loopback(settings, _free_or_any(settings.server.webhook.port) or free_port())
            await webhooks.make_namespace(client, settings)
            if not local:
                # After the services have ended: running services would restore the webhooks.
                stack.push_async_callback(webhooks.withdraw, client)
        without = () if webhooks.named(settings) else (services.ADMISSION,)
        settings = _on_this_machine(settings)
        platform = await stack.enter_async_context(running(services.make(without=without), settings))
        stack.enter_context(announced(folder, running_here(settings, folder, has_token=local)))
        await platform.ready(READY_WITHIN)
        if is_local_webhook:
            await webhooks.check_reachable(client)
        # A watcher that stands by for its election is also ready.
        await wait_for_stream(platform.context.bus, STATE)
        console.print("[bold green]Dynamo Platform is up[/]; Ctrl-C stops it.")
        ports = platform.health_port, platform.metrics_port
        lines = [
            f"{name:<9} {address}" for name, address in addresses_of(settings, platform.context.kube.server, *ports)
        ]
        if local:
            lines.append(f"sign in   with the token that this prints: cat {folder / TOKEN}")
            lines.append(f"export KUBECONFIG={cluster.kubeconfig}")
        command = own_command()
        lines.append(f"next      kubectl apply -f examples/vllm-agg.yaml; {command} get -w; {command} events -f")
        for line in lines:
            console.print(f"  {line}", soft_wrap=True, markup=False)
        await asyncio.Event().wait()


def _on_this_machine(settings: Settings) -> Settings:
    """The settings with defaults for ports: on loopback, and any free port if the usual port is in use."""
    api = settings.platform.dynadmin
    # Without another replica, callers cannot switch during a drain.
    update: dict[str, object] = {} if "drain" in api.model_fields_set else {"drain": 0.0}
    if "dynadmin" not in settings.platform.model_fields_set:
        update |= {"host": webhooks.LOOPBACK, "port": _free_or_any(api.port) or free_port()}
    settings = with_platform(settings, dynadmin=api.model_copy(update=update))
    if settings.server.model_fields_set & {"metrics", "health_probe"}:
        return settings
    server = settings.server
    parts = {
        name: part.model_copy(update={"bind_address": webhooks.LOOPBACK, "port": _free_or_any(part.port), **more})
        # Only users of this machine can connect to loopback: these ports need no TLS.
        for name, part, more in (
            ("metrics", server.metrics, {"secure": False}),
            ("health_probe", server.health_probe, {}),
        )
    }
    return settings.model_copy(update={"server": server.model_copy(update=parts)})


def _free_or_any(port: int) -> int:
    return port if is_free(port) else 0
